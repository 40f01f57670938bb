//! Tables that list, for individual objects, the tags to set or remove.

use crate::error::{Error, FileResult, Result};
use crate::osm::{MAX_TAG_LEN, ObjectId, ObjectKind, TypeThenId, id_rank};
use crate::pbf::BlobEntry;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// A table of tags: the keys of each object, with their new values. An empty value removes the tag.
#[derive(Debug, Clone, Default)]
pub struct TagTable(Arc<TagsByObject>);

/// The keys and values of each object.
#[derive(Debug, Default)]
struct TagsByObject(BTreeMap<TypeThenId, Vec<(String, String)>>);

impl TagTable {
    /// Reads a table of comma-separated values (RFC 4180), whose first line names its columns: `type` (node, way or
    /// relation, or n, w or r), `id`, `key` and `value`, in any order.
    ///
    /// # Errors
    ///
    /// The file cannot be read; a column is missing; a line has the wrong number of cells, an unknown type or id, no
    /// key, a key or value with more than 255 characters or a control character, or a key that the object already has
    /// in an earlier line.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).for_path(path, "cannot read")?;
        Self::parse(&text).map_err(|cause| Error::file(path, cause))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let (mut rest, mut number, mut table) = (text, 1, TagsByObject::default());
        let titles = read_row(&mut rest).map_err(|cause| format!("line 1: {cause}"))?;
        let titles = titles.unwrap_or_default();
        let mut columns = [0; 4];
        for (column, name) in columns.iter_mut().zip(["type", "id", "key", "value"]) {
            let found = titles.iter().position(|title| title.trim() == name);
            *column = found.ok_or_else(|| format!("line 1: expected a column '{name}'"))?;
        }
        loop {
            number += 1;
            let line = number;
            let bad = |cause: String| format!("line {line}: {cause}");
            let before = rest;
            let Some(row) = read_row(&mut rest).map_err(bad)? else {
                return Ok(Self(Arc::new(table)));
            };
            let read = &before[..before.len() - rest.len()];
            // A row with line breaks in its cells takes several lines.
            number += read.trim_end_matches(['\r', '\n']).matches('\n').count();
            if row.iter().all(String::is_empty) {
                continue;
            }
            if row.len() != titles.len() {
                let (expected, found) = (titles.len(), row.len());
                return Err(bad(format!("expected {expected} cells, found {found}")));
            }
            table
                .add(columns.map(|column| row[column].as_str()))
                .map_err(bad)?;
        }
    }

    /// Returns the tags that the table has for an object.
    pub(super) fn tags_of(&self, object: ObjectId) -> Option<&[(String, String)]> {
        let row = self.0.0.get(&(object.kind, id_rank(object.id)));
        row.map(Vec::as_slice)
    }

    /// Whether the blob of `entry` may have an object of the table.
    pub(super) fn may_meet(&self, entry: &BlobEntry) -> bool {
        match (entry.first_sort_key(), entry.last_sort_key()) {
            (Some(first), Some(last)) if first <= last => {
                self.0.0.range(first..=last).next().is_some()
            }
            _ => !self.0.0.is_empty(),
        }
    }
}

impl TagsByObject {
    /// Adds a tag to the tags of its object.
    fn add(&mut self, [kind, id, key, value]: [&str; 4]) -> Result<(), String> {
        let name = kind.trim().to_ascii_lowercase();
        let mut kinds = ObjectKind::ALL.into_iter();
        let kind = kinds.find(|kind| name == kind.name() || name == kind.letter().to_string());
        let kind = kind.ok_or_else(|| format!("expected node, way or relation, found '{name}'"))?;
        let id = id.trim().parse::<i64>();
        let id = id.map_err(|_| "expected a number in the column 'id'".to_owned())?;
        let object = ObjectId { kind, id };
        for text in [key, value] {
            if text.chars().count() > MAX_TAG_LEN || text.chars().any(char::is_control) {
                return Err(format!(
                    "{object}: a key or value has more than {MAX_TAG_LEN} characters, or control characters"
                ));
            }
        }
        if key.is_empty() {
            return Err(format!("{object}: expected a key"));
        }
        let row = self.0.entry((kind, id_rank(id))).or_default();
        if row.iter().any(|(other, _)| other == key) {
            return Err(format!(
                "{object}: the key '{key}' is in an earlier line, too"
            ));
        }
        row.push((key.to_owned(), value.to_owned()));
        Ok(())
    }
}

/// Reads the cells of the next row; `None` at the end. Moves `rest` to the end of the row.
fn read_row(rest: &mut &str) -> Result<Option<Vec<String>>, String> {
    if rest.is_empty() {
        return Ok(None);
    }
    let mut row = Vec::new();
    loop {
        let (cell, end) = match rest.strip_prefix('"') {
            Some(quoted) => read_quoted_cell(quoted)?,
            None => {
                let end = rest.find([',', '\n']).unwrap_or(rest.len());
                (rest[..end].trim_end_matches('\r').to_owned(), &rest[end..])
            }
        };
        row.push(cell);
        let end = end.strip_prefix('\r').unwrap_or(end);
        match end.strip_prefix(',') {
            Some(next) => *rest = next,
            None => {
                *rest = end.strip_prefix('\n').unwrap_or(end);
                let is_end = rest.len() < end.len() || end.is_empty();
                return if is_end {
                    Ok(Some(row))
                } else {
                    Err("expected a comma after a cell in quotation marks".into())
                };
            }
        }
    }
}

/// Reads a cell after its opening quotation mark. Returns the text of the cell, and the rest of `quoted` after the
/// closing quotation mark. Two quotation marks in a cell stand for one.
fn read_quoted_cell(quoted: &str) -> Result<(String, &str), String> {
    let (mut cell, mut rest) = (String::new(), quoted);
    loop {
        let Some((text, after)) = rest.split_once('"') else {
            return Err("a cell begins with a quotation mark that is never closed".into());
        };
        cell.push_str(text);
        match after.strip_prefix('"') {
            Some(next) => {
                cell.push('"');
                rest = next;
            }
            None => return Ok((cell, after)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_columns_in_any_order_and_cells_in_quotation_marks() {
        let text = "id,type,value,key\r\n5,way,\"a, \"\"b\"\"\",name\r\n5,w,,ref\n\n-7,Node,x,y";
        let table = TagTable::parse(text).unwrap();
        let of = |kind, id| table.tags_of(ObjectId { kind, id }).map(<[_]>::to_vec);
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let way = [pair("name", "a, \"b\""), pair("ref", "")];
        assert_eq!(of(ObjectKind::Way, 5).unwrap(), way);
        assert_eq!(of(ObjectKind::Node, -7).unwrap(), [pair("y", "x")]);
        assert_eq!(of(ObjectKind::Node, 5), None);
    }

    #[test]
    fn an_error_in_a_table_names_the_line_and_the_object() {
        for (text, expected) in [
            ("", "line 1: expected a column 'type'"),
            ("type,id,key\n", "line 1: expected a column 'value'"),
            (
                "type,id,key,value\nw,1,a\n",
                "line 2: expected 4 cells, found 3",
            ),
            ("type,id,key,value\nx,1,a,b\n", "line 2: expected node"),
            ("type,id,key,value\nw,x,a,b\n", "line 2: expected a number"),
            ("type,id,key,value\nw,1,,b\n", "line 2: w1: expected a key"),
            (
                "type,id,key,value\nw,1,a,b\nw,1,a,c\n",
                "line 3: w1: the key 'a'",
            ),
            ("type,id,key,value\nw,1,a,\"b\n", "line 2: a cell begins"),
        ] {
            let error = TagTable::parse(text).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
        let long = format!("type,id,key,value\nw,1,{},b\n", "k".repeat(256));
        assert!(TagTable::parse(&long).unwrap_err().contains("w1: a key"));
    }
}

//! Arguments that select objects by kind, by tags or by id.

use crate::cli::session::Session;
use crate::commands::IdSource;
use crate::error::display_path;
use crate::index::IdSets;
use crate::osm::{KindSet, ObjectExpression, ObjectKind, parse_object_ids};
use anyhow::{Result, anyhow};
use clap::Args;
use clap::ValueEnum;
use clap::builder::PossibleValue;
use std::path::{Path, PathBuf};

impl ValueEnum for ObjectKind {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let aliases: &[&str] = match self {
            Self::Node => &["nodes", "n"],
            Self::Way => &["ways", "w"],
            Self::Relation => &["relations", "rel", "r"],
        };
        Some(PossibleValue::new(self.name()).aliases(aliases))
    }
}

/// The kinds of objects that a command processes.
#[derive(Debug, Args)]
pub struct KindArgs {
    /// Kinds of objects: node, way, relation; comma-separated, repeatable
    #[arg(
        short = 't',
        long = "type",
        visible_alias = "object-type",
        value_name = "KIND",
        value_delimiter = ',',
        value_enum,
        hide_possible_values = true
    )]
    pub kinds: Vec<ObjectKind>,
}

impl KindArgs {
    /// Returns the kinds that were given, or all kinds if none were given.
    pub fn kind_set(&self) -> KindSet {
        if self.kinds.is_empty() {
            KindSet::ALL
        } else {
            self.kinds.iter().copied().collect()
        }
    }
}

/// The kinds of objects that a command processes, and changesets.
#[derive(Debug, Args)]
pub struct ChangesetKindArgs {
    /// Kinds of objects: node, way, relation, changeset; comma-separated, repeatable
    #[arg(
        short = 't',
        long = "type",
        visible_alias = "object-type",
        value_name = "KIND",
        value_delimiter = ',',
        value_parser = parse_kind
    )]
    kinds: Vec<KindOrChangeset>,
}

/// The kind of an object or changeset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KindOrChangeset {
    Object(ObjectKind),
    Changeset,
}

fn parse_kind(text: &str) -> Result<KindOrChangeset, String> {
    match text {
        "changeset" | "changesets" | "c" => Ok(KindOrChangeset::Changeset),
        _ => ObjectKind::from_str(text, false)
            .map(KindOrChangeset::Object)
            .map_err(|_| "expected node, way, relation or changeset".into()),
    }
}

impl ChangesetKindArgs {
    /// Returns the kinds of objects that were given, or all kinds if the option is absent.
    pub fn kind_set(&self) -> KindSet {
        let kinds = self.kinds.iter().filter_map(|kind| match kind {
            KindOrChangeset::Object(kind) => Some(*kind),
            KindOrChangeset::Changeset => None,
        });
        if self.kinds.is_empty() {
            KindSet::ALL
        } else {
            kinds.collect()
        }
    }

    /// Whether changesets are among the kinds that were given, or the option is absent.
    pub fn has_changesets(&self) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&KindOrChangeset::Changeset)
    }
}

/// The objects or tags that a command looks for.
#[derive(Debug, Args)]
pub struct ExpressionArgs {
    /// Expressions: [nwra/]key[=value], such as w/highway or n/amenity=pub,bar
    ///
    /// The letters before the slash restrict an expression to nodes (n), ways (w), relations (r) or areas (a). !=
    /// matches other values, and ~ a regular expression. Commas separate values, any of which matches. * at either end
    /// of a key or value stands for any text. & joins tags that all have to match; ! before a tag excludes objects with
    /// it.
    #[arg(value_name = "EXPRESSION")]
    expressions: Vec<String>,
    /// Read expressions from FILE, one per line; # at the start of a word begins a comment
    #[arg(short = 'e', long = "expressions", value_name = "FILE")]
    expression_files: Vec<PathBuf>,
}

impl ExpressionArgs {
    /// Returns the expressions on the command line, as they were given.
    pub fn texts(&self) -> &[String] {
        &self.expressions
    }

    /// Parses all expressions: first those in files, then those on the command line. An error in a file names the file
    /// and the line.
    pub fn parse(&self, session: &Session) -> Result<Vec<ObjectExpression>> {
        let parse = if session.conventions.only_tag_expressions {
            ObjectExpression::parse_tag
        } else {
            ObjectExpression::parse
        };
        let mut expressions = Vec::new();
        for path in &self.expression_files {
            expressions.extend(read_expressions(session, path, parse)?);
        }
        for text in &self.expressions {
            expressions.push(parse(text).map_err(anyhow::Error::msg)?);
        }
        Ok(expressions)
    }
}

/// Reads a text file; `-` is standard input.
pub fn read_text(path: &Path) -> Result<String> {
    let text = if path.as_os_str() == "-" {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(path)
    };
    text.map_err(|error| anyhow!("{}: cannot read: {error}", display_path(path)))
}

/// Reads expressions from a file, one per line. An error names the file and the line.
pub fn read_expressions(
    session: &Session,
    path: &Path,
    parse: impl Fn(&str) -> Result<ObjectExpression, String>,
) -> Result<Vec<ObjectExpression>> {
    let text = read_text(path)?;
    let text = if session.conventions.cuts_at_every_hash {
        let lines = text
            .lines()
            .map(|line| line.split('#').next().unwrap_or(line));
        lines.collect::<Vec<_>>().join("\n")
    } else {
        text
    };
    let lines = ObjectExpression::parse_lines(&text, parse);
    Ok(lines.map_err(|cause| crate::Error::file(path, cause))?)
}

/// The ids of the objects that a command processes.
#[derive(Debug, Args)]
pub struct IdArgs {
    /// Ids, such as n17 w4 r8; a number alone is a node, or of the kind in --default-type
    ///
    /// way/4, way 4 and the address of a page, https://www.openstreetmap.org/way/4, are ids, too. One argument can
    /// contain several ids, separated by spaces, commas, semicolons, slashes or vertical bars.
    #[arg(value_name = "ID", allow_negative_numbers = true,
          required_unless_present_any = ["id_file", "id_osm_file"])]
    ids: Vec<String>,
    /// Read ids from FILE, a list or a table; - is standard input
    ///
    /// A list has one id at the start of each line. Text after a space or # is ignored, so OPL files work, too. A table
    /// (CSV, TSV) has a first line with the column names type and id.
    #[arg(short = 'i', long, value_name = "FILE")]
    id_file: Vec<PathBuf>,
    /// Use the ids of all objects in the OSM file FILE
    #[arg(short = 'I', long, value_name = "FILE")]
    id_osm_file: Vec<PathBuf>,
    /// Kind of object that an id without a letter names
    #[arg(
        long,
        value_name = "KIND",
        default_value = "node",
        value_enum,
        hide_possible_values = true
    )]
    default_type: ObjectKind,
    /// Print the requested ids and those that were not found
    #[arg(long)]
    pub verbose_ids: bool,
}

impl IdArgs {
    /// Parses the ids on the command line, and returns them with the paths of the files that contain further ids.
    pub fn source(&self) -> Result<IdSource> {
        let ids = self.ids.iter().map(String::as_str);
        Ok(IdSource {
            ids: parse_object_ids(ids, self.default_type).map_err(anyhow::Error::msg)?,
            id_files: self.id_file.clone(),
            osm_files: self.id_osm_file.clone(),
            default_kind: self.default_type,
        })
    }

    /// If --verbose-ids was given, prints ids to standard error. For each kind with ids, prints a line that begins with
    /// `what`.
    pub fn print(&self, session: &Session, what: &str, ids: &IdSets) {
        if self.verbose_ids {
            for kind in ObjectKind::ALL {
                let ids: Vec<String> = ids.of(kind).ids().map(|id| id.to_string()).collect();
                if !ids.is_empty() {
                    session.print_to_stderr(&format!(
                        "{what} {}: {}\n",
                        kind.plural(),
                        ids.join(" ")
                    ));
                }
            }
        }
    }
}

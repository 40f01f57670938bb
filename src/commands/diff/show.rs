//! Writes differences as human-readable text.

use super::Equality;
use super::locations::for_each_moved_node;
use super::report::Report;
use super::side::Side;
use crate::formats::{ObjectText, TextFormat, TextOptions};
use crate::osm::{Location, ObjectId, format_timestamp};
use crate::pbf::{Member, Object, ObjectBody};
use std::fmt::Write;

/// Appends a line such as `*n17 v3 v4`, with the sign, the object, and its versions in the old and the new file. Writes
/// a single version if both are equal or only one file has the object.
pub(super) fn put_line(
    out: &mut String,
    report: Report,
    id: ObjectId,
    [old, new]: [Option<i64>; 2],
) {
    let _ = write!(out, "{}{id}", report.line_prefix());
    for version in old.into_iter().chain(new.filter(|_| old != new)) {
        let _ = write!(out, " v{version}");
    }
    out.push('\n');
}

/// Writes objects as text whose lines begin with a sign.
pub(super) struct SignedText {
    text: ObjectText,
    has_colors: bool,
}

impl SignedText {
    pub(super) fn new(options: &TextOptions) -> Self {
        Self {
            text: ObjectText::new(options, false),
            has_colors: options.debug.colors && options.format == TextFormat::Debug,
        }
    }

    /// Appends the lines of an object. Empty lines get no sign.
    pub(super) fn put(&mut self, out: &mut String, report: Report, object: &Object<'_>) {
        self.text.put(object);
        let sign = match (self.has_colors, report) {
            (true, Report::Left) => "\x1b[41m\x1b[37m\x1b[1m-\x1b[0m",
            (true, Report::Right) => "\x1b[42m\x1b[37m\x1b[1m+\x1b[0m",
            (_, Report::Left) => "-",
            (_, Report::Right) => "+",
            (_, Report::Different) => "*",
            (_, Report::Same) => " ",
        };
        for line in self.text.take_unencoded_text().split_inclusive('\n') {
            if line != "\n" {
                out.push_str(sign);
            }
            out.push_str(line);
        }
    }
}

/// Appends a line for each difference between two versions of an object. `moved` has the indices of those references of
/// a way for which the stored locations count as different.
pub(super) fn put_details(
    out: &mut String,
    old: &Side<'_>,
    new: &Side<'_>,
    moved: &[usize],
    equality: Equality,
) {
    put_attributes(out, old, new, equality);
    for_each_moved_node(old, new, moved, |id, locations| {
        let shown = |location: Option<Location>| match location {
            Some(location) => {
                let degrees = [location.lat_e7(), location.lon_e7()].map(|e7| f64::from(e7) / 1e7);
                format!("{} {}", degrees[0], degrees[1])
            }
            None => "unknown".to_owned(),
        };
        let [before, after] = locations.map(shown);
        let _ = writeln!(out, "    location of n{id}: {before} -> {after}");
    });
    let (old, new) = (&old.object, &new.object);
    put_tags(out, old, new);
    match (&old.body, &new.body) {
        (ObjectBody::Way { refs: one, .. }, ObjectBody::Way { refs: two, .. }) if one != two => {
            let shown = |refs: &[i64]| to_texts(refs, |id| format!("n{id}"));
            put_list_difference(out, "nodes", shown(one), shown(two));
        }
        (ObjectBody::Relation { members: one }, ObjectBody::Relation { members: two })
            if one != two =>
        {
            let shown = |members: &[Member<'_>]| {
                to_texts(members, |member| {
                    let letter = member.kind.letter();
                    format!(
                        "{letter}{}@{}",
                        member.id,
                        escape_control_chars(member.role)
                    )
                })
            };
            put_list_difference(out, "members", shown(one), shown(two));
        }
        _ => {}
    }
}

/// Appends a line for each difference in the location of a node, in visibility, and in metadata.
fn put_attributes(out: &mut String, old: &Side<'_>, new: &Side<'_>, equality: Equality) {
    let mut line = |name: &str, old: String, new: String| {
        if old != new {
            let _ = writeln!(out, "    {name}: {old} -> {new}");
        }
    };
    let location = |side: &Side<'_>| {
        let (lat, lon) = side.nano_location.unwrap_or_default();
        format!("{} {}", lat as f64 / 1e9, lon as f64 / 1e9)
    };
    line("latitude, longitude", location(old), location(new));
    let (old, new) = (&old.object, &new.object);
    let shown = |visible: bool| if visible { "visible" } else { "deleted" }.to_owned();
    line("object", shown(old.info.visible), shown(new.info.visible));
    if equality.metadata {
        let infos = [&old.info, &new.info];
        // An attribute that one of the objects lacks is not compared, so it is not shown.
        let mut line = |name: &str, values: [Option<String>; 2]| {
            if let [Some(before), Some(after)] = values {
                line(name, before, after);
            }
        };
        let text = |number: i64| number.to_string();
        line(
            "timestamp",
            infos.map(|info| info.timestamp.map(format_timestamp)),
        );
        if !equality.ignore_changeset {
            line("changeset", infos.map(|info| info.changeset.map(text)));
        }
        if !equality.ignore_uid {
            line(
                "uid",
                infos.map(|info| info.uid.map(|uid| text(uid.into()))),
            );
        }
        if !equality.ignore_user {
            line(
                "user",
                infos.map(|info| info.user.map(escape_control_chars)),
            );
        }
    }
}

fn put_tags(out: &mut String, old: &Object<'_>, new: &Object<'_>) {
    for (sign, these, others) in [('-', &old.tags, &new.tags), ('+', &new.tags, &old.tags)] {
        for (key, value) in these.iter().filter(|tag| !others.contains(tag)) {
            let _ = writeln!(
                out,
                "    {sign}{}={}",
                escape_control_chars(key),
                escape_control_chars(value)
            );
        }
    }
}

/// Appends a line with two lists, without the start and the end that the lists have in common.
fn put_list_difference(out: &mut String, name: &str, old: Vec<String>, new: Vec<String>) {
    let start = old
        .iter()
        .zip(&new)
        .take_while(|(one, two)| one == two)
        .count();
    let rest = old.len().min(new.len()) - start;
    let backwards = old.iter().rev().zip(new.iter().rev());
    let end = backwards
        .take(rest)
        .take_while(|(one, two)| one == two)
        .count();
    let part = |list: &[String]| match &list[start..list.len() - end] {
        [] => "nothing".to_owned(),
        part => part.join(","),
    };
    let _ = writeln!(
        out,
        "    {name} from index {}: {} -> {}",
        start + 1,
        part(&old),
        part(&new)
    );
}

fn to_texts<T>(steps: &[T], shown: impl Fn(&T) -> String) -> Vec<String> {
    steps.iter().map(shown).collect()
}

/// Returns the text with control characters escaped.
fn escape_control_chars(text: &str) -> String {
    let escape = |char: char| {
        if char.is_control() {
            char.escape_default().collect::<String>()
        } else {
            char.to_string()
        }
    };
    text.chars().map(escape).collect()
}

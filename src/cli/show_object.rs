use super::args::{RunArgs, Stdout};
use super::{Answer, complain};
use crate::commands::inspect::show::{self, ShownObject};
use crate::osm::{ObjectKind, parse_object_ids};
use anyhow::Result;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Show objects as a file stores them
///
/// Exit status 1 if some were not found.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  pbfhogg show berlin.osm.pbf n17 w42")]
pub struct Args {
    /// Input file; - is standard input
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// Ids: n17 w42 r111
    #[arg(value_name = "ID", required = true, allow_negative_numbers = true)]
    ids: Vec<String>,
    #[command(flatten)]
    run: RunArgs,
}

pub fn run(args: &Args) -> Result<Answer> {
    run_with(&args.input, &args.ids, &args.run)
}

/// Prints the objects with the given ids; an id without a letter is that of a node. Prints ids that are not in the file
/// to standard error, and returns [`Answer::No`] if there are any.
pub fn run_with(input: &Path, ids: &[String], run: &RunArgs) -> Result<Answer> {
    let ctx = run.context();
    let mut wanted = Vec::new();
    for text in ids {
        wanted.extend(parse_object_ids(text, ObjectKind::Node).map_err(anyhow::Error::msg)?);
    }
    let options = show::Options {
        input: input.to_owned(),
        ids: wanted,
    };
    let summary = show::run(&options, &ctx)?;
    run.report(&ctx, &summary, Stdout::Free, || {
        summary.objects.iter().map(text).collect()
    })?;
    if !summary.missing.is_empty() && !run.quiet {
        complain(&format!("not found: {}\n", summary.missing.join(" ")));
    }
    Ok(Answer::yes_if(summary.missing.is_empty()))
}

/// Replaces control characters by escapes, so that the text is safe to print.
fn printable(text: &str) -> String {
    text.chars().flat_map(super::printable).collect()
}

fn text(object: &ShownObject) -> String {
    let mut out = String::new();
    let deleted = if object.visible { "" } else { ", deleted" };
    let _ = writeln!(out, "{} {}{deleted}", object.kind, object.id);
    let mut line = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = writeln!(out, "  {name:<12}{value}");
        }
    };
    line("version", object.version.map(|version| version.to_string()));
    line("timestamp", object.timestamp.clone());
    line(
        "changeset",
        object.changeset.map(|number| number.to_string()),
    );
    let user = object.user.as_deref().map(printable);
    line(
        "user",
        match (user, object.uid) {
            (Some(user), Some(uid)) => Some(format!("{user} ({uid})")),
            (user, uid) => user.or(uid.map(|uid| uid.to_string())),
        },
    );
    let location = object
        .location
        .map(|location| format!("{location} (latitude, longitude)"));
    line("location", location);
    if !object.tags.is_empty() {
        let _ = writeln!(out, "  tags");
        for (key, value) in &object.tags {
            let _ = writeln!(out, "    {} = {}", printable(key), printable(value));
        }
    }
    if !object.refs.is_empty() {
        let _ = writeln!(out, "  nodes ({})", object.refs.len());
        for (index, id) in object.refs.iter().enumerate() {
            let location = object.locations.get(index);
            let location = location.map(|location| format!("  {location}"));
            let _ = writeln!(out, "    n{id}{}", location.unwrap_or_default());
        }
    }
    if !object.members.is_empty() {
        let _ = writeln!(out, "  members ({})", object.members.len());
        for member in &object.members {
            let letter = member.kind.letter();
            let _ = writeln!(out, "    {letter}{} {}", member.id, printable(&member.role));
        }
    }
    out
}

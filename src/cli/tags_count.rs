use super::args::names::Implied;
use super::args::{ExpressionArgs, KindArgs, RunArgs, Stdout, parse_size, text_target};
use super::session::Session;
use super::{CommandAnswer, show};
use crate::commands::tags_count::{self, Summary, TagOrder};
use crate::formats::TextOutput;
use crate::io::OutputTarget;
use anyhow::Result;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Count how often keys and tags occur
///
/// Without expressions, all keys are counted. An expression without a value counts keys; one with a value, such as
/// highway=*, counts tags. Each line has the count, the key and, for tags, the value, separated by tabs.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg inspect tags berlin.osm.pbf
  pbfhogg inspect tags berlin.osm.pbf 'highway=*' -m 100
  pbfhogg inspect tags -t way -s name-asc berlin.osm.pbf 'addr:*'
  pbfhogg inspect tags --max-memory 2G planet.osm.pbf '*=*' > all-tags.tsv")]
pub struct Args {
    /// Input file; - is standard input
    #[arg(value_name = "FILE")]
    input: PathBuf,
    #[command(flatten)]
    expressions: ExpressionArgs,
    /// Leave out keys and tags that occur fewer than N times
    #[arg(short = 'm', long, value_name = "N", default_value_t = 0)]
    min_count: u64,
    /// Leave out keys and tags that occur more than N times
    #[arg(short = 'M', long, value_name = "N", default_value_t = u64::MAX, hide_default_value = true)]
    max_count: u64,
    /// Order of the lines
    #[arg(
        short,
        long,
        value_name = "ORDER",
        default_value = "count-desc",
        value_enum
    )]
    sort: CountOrder,
    /// Maximum memory for counts, such as 500M or 2G; further counts go to temporary files
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = parse_size)]
    max_memory: u64,
    #[command(flatten)]
    kinds: KindArgs,
    /// Output file; standard output if omitted or -
    #[arg(short, long, value_name = "FILE", help_heading = "Common options")]
    output: Option<PathBuf>,
    /// Replace the output file if it exists
    #[arg(short = 'O', long, help_heading = "Common options")]
    overwrite: bool,
    #[command(flatten)]
    run: RunArgs,
}

/// The order of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum CountOrder {
    CountDesc,
    CountAsc,
    NameAsc,
    NameDesc,
}

pub fn run(session: &Session, args: &Args) -> Result<CommandAnswer> {
    let ctx = args.run.context(session);
    let options = tags_count::Options {
        input: args.input.clone(),
        expressions: args.expressions.parse(session)?,
        kinds: args.kinds.kind_set(),
        min_count: args.min_count,
        max_count: args.max_count,
        order: match args.sort {
            CountOrder::CountDesc => TagOrder::CountDescending,
            CountOrder::CountAsc => TagOrder::CountAscending,
            CountOrder::NameDesc => TagOrder::NameDescending,
            CountOrder::NameAsc => TagOrder::NameAscending,
        },
        max_memory: args.max_memory,
    };
    let path = args.output.as_deref().unwrap_or(Path::new("-"));
    let lines_of_text = Implied {
        what: "tags-count writes lines of text",
        endings: &["txt", "tsv", "csv"],
        may_be_compressed: true,
        advice: "name the output .tsv or .txt",
    };
    lines_of_text.check_name(session, path)?;
    let target = text_target(session, path, args.overwrite)?;
    target.check()?;
    let summary = tags_count::run(&options, &ctx)?;
    if target != OutputTarget::Stdout {
        let mut output = TextOutput::create(target.clone(), &ctx)?;
        write_lines(&summary, |text| Ok(output.write(text)?))?;
        output.finish()?;
        return session.report(&args.run, &ctx, &summary, &target, || {
            let keys = show::counted(summary.tags.len() as u64, "line");
            format!("{}: {keys}\n", target.path().display())
        });
    }
    session.report(&args.run, &ctx, &summary, Stdout::Answer, String::new)?;
    if !args.run.quiet && args.run.json.is_none() {
        write_lines(&summary, |text| session.print(text))?;
    }
    Ok(CommandAnswer::Yes)
}

/// Formats one line for each counted key or tag. Calls `write` with chunks of lines, because there may be millions of
/// lines.
fn write_lines(summary: &Summary, mut write: impl FnMut(&str) -> Result<()>) -> Result<()> {
    const PORTION: usize = 1 << 16;
    let mut out = String::with_capacity(PORTION * 2);
    for tag in &summary.tags {
        let quoted = |text: &str| text.replace('"', "\"\"");
        let _ = write!(out, "{}\t\"{}\"", tag.count, quoted(&tag.key));
        if let Some(value) = &tag.value {
            let _ = write!(out, "\t\"{}\"", quoted(value));
        }
        out.push('\n');
        if out.len() > PORTION {
            write(&out)?;
            out.clear();
        }
    }
    write(&out)
}

use super::shared::{KindArgs, RunArgs};
use super::{Answer, show};
use anyhow::Result;
use pbfhogg::commands::check::{self, IndexCheck, Summary};
use pbfhogg::osm::ObjectKind;
use std::fmt::Write;
use std::path::PathBuf;

/// Check the order of ids, that references lead somewhere, and that indexes are right
///
/// Exit status 1 where something is wrong. By default ids and the nodes of ways are checked.
///
/// --index decodes every blob and compares it with all that the table of contents and per-blob indexes say, content
/// hashes included: bits that the disk lost are found and located.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg check planet.osm.pbf
  pbfhogg check --refs -r extract.osm.pbf
  pbfhogg check --refs --show-ids --max-errors 0 extract.osm.pbf > missing.txt
  pbfhogg check --ids --full unsorted.osm.pbf
  pbfhogg check --index backup.osm.pbf")]
pub struct Args {
    /// Input file; - is standard input
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// Check that ids are in canonical order and come once
    #[arg(long)]
    ids: bool,
    /// Check that the nodes of ways are in the file
    #[arg(long)]
    refs: bool,
    /// Find ids that come again anywhere, also in a file that is not in order
    #[arg(long)]
    full: bool,
    /// Check that all blobs can be read and are what the file's indexes say
    #[arg(long)]
    index: bool,
    /// Also check that the members of relations are in the file
    #[arg(short = 'r', long)]
    check_relations: bool,
    /// Print each reference that leads nowhere, as "n17 in w4"
    #[arg(short = 'i', long)]
    show_ids: bool,
    /// List at most N violations of each sort; 0 lists all
    #[arg(long, value_name = "N", default_value_t = 100)]
    max_errors: usize,
    #[command(flatten)]
    kinds: KindArgs,
    #[command(flatten)]
    run: RunArgs,
}

pub fn run(args: &Args, refs_only: bool) -> Result<Answer> {
    let ctx = args.run.context();
    let refs = args.refs || args.check_relations || refs_only;
    let ids = args.ids || args.full;
    let both = !refs && !ids && !args.index;
    let options = check::Options {
        input: args.input.clone(),
        ids: ids || both,
        full: args.full,
        refs: refs || both,
        relations: args.check_relations,
        index: args.index,
        kinds: args.kinds.set(),
        max_listed: match args.max_errors {
            0 => usize::MAX,
            most => most,
        },
    };
    let summary = check::run(&options, &ctx)?;
    args.run
        .finish(&ctx, &summary, true, || text(args, &summary))?;
    Ok(if summary.is_sound() {
        Answer::Yes
    } else {
        Answer::No
    })
}

fn text(args: &Args, summary: &Summary) -> String {
    let mut out = String::new();
    if args.show_ids {
        for dangling in &summary.listed_refs {
            let [kind, in_kind] = [dangling.kind, dangling.in_kind].map(ObjectKind::letter);
            let _ = writeln!(out, "{kind}{} in {in_kind}{}", dangling.id, dangling.in_id);
        }
    }
    let path = args.input.display();
    if let Some(index) = &summary.index {
        index_text(&mut out, &path.to_string(), index);
    }
    if summary.out_of_order.is_none() && summary.missing.is_none() {
        return out;
    }
    let _ = writeln!(
        out,
        "{path}: {}, {}, {}",
        show::counted(summary.nodes, "node"),
        show::counted(summary.ways, "way"),
        show::counted(summary.relations, "relation"),
    );
    if let (Some(disorder), Some(duplicates)) = (summary.out_of_order, summary.duplicates) {
        for violation in &summary.listed_ids {
            let _ = writeln!(
                out,
                "  {}{} in blob {} {}",
                violation.kind.letter(),
                violation.id,
                violation.blob,
                if violation.duplicate {
                    "comes again"
                } else {
                    "is out of order"
                },
            );
        }
        let _ = match disorder + duplicates {
            0 => writeln!(out, "ids: in order, none twice"),
            _ => writeln!(
                out,
                "ids: {} out of order, {} that come again",
                show::number(disorder),
                show::number(duplicates)
            ),
        };
    }
    if let Some(missing) = summary.missing {
        let mut line = |what: &str, count: u64| {
            let _ = writeln!(out, "{what} missing: {}", show::number(count));
        };
        line("nodes in ways", missing.nodes_in_ways);
        if args.check_relations {
            line("nodes in relations", missing.nodes_in_relations);
            line("ways in relations", missing.ways_in_relations);
            line("relations in relations", missing.relations_in_relations);
        }
    }
    out
}

fn index_text(out: &mut String, path: &str, index: &IndexCheck) {
    let _ = writeln!(
        out,
        "{path}: {}; {} in the table of contents, {} of them with a hash of their content; {} with an index of their own",
        show::counted(index.blobs, "blob"),
        show::number(index.in_table),
        show::number(index.hashed),
        show::number(index.with_blob_index),
    );
    for finding in &index.listed {
        let _ = match finding.blob {
            0 => writeln!(out, "  {}", finding.what),
            blob => writeln!(
                out,
                "  blob {blob} at byte {}: {}",
                finding.offset, finding.what
            ),
        };
    }
    let _ = match (index.damaged, index.false_claims) {
        (0, 0) if index.in_table + index.with_blob_index == 0 => {
            writeln!(out, "index: there is none; every blob can be read")
        }
        (0, 0) => writeln!(out, "index: every blob is what is said of it"),
        (damaged, 0) => writeln!(out, "index: {} damaged", show::counted(damaged, "blob")),
        (0, false_claims) => writeln!(
            out,
            "index: {}; `pbfhogg cat --force` makes a new index",
            show::counted(false_claims, "false claim")
        ),
        (damaged, false_claims) => writeln!(
            out,
            "index: {} damaged, {}",
            show::counted(damaged, "blob"),
            show::counted(false_claims, "false claim")
        ),
    };
}

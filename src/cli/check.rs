use super::args::{KindArgs, RunArgs, text_target};
use super::check_areas::{self, put_count, put_left_out};
use super::export_format::format_of;
use super::session::Session;
use super::{CommandAnswer, show};
use crate::cli::args::Stdout;
use crate::commands::check::{self, Dangling, IndexCheck, Missing, ProblemFile, Summary};
use crate::error::display_path;
use crate::formats::FeatureOptions;
use crate::osm::ObjectKind;
use anyhow::{Result, bail};
use std::fmt::Write;
use std::path::PathBuf;

/// Check ids, references, indexes and areas
///
/// Checks that ids are in order and unique, that coordinates of nodes are valid, that referenced objects exist, and
/// that indexes are correct. By default, ids, coordinates and the nodes of ways are checked. Exit status 1 if there is
/// a problem.
///
/// --full decodes all objects, and finds everything in a file that another command would refuse: strings that are not
/// UTF-8, indices beyond the string table, columns of different lengths. It also names tags without a key or with a key
/// that the object has already, and versions and changesets that other programs refuse. It compares the objects with
/// the features that the header declares, and the locations that ways store with the nodes.
///
/// If a way stores the location of a node that is not in the file, the node is not missing. The report names the form
/// of the file: plain; located, with all nodes; located, needed nodes only; or mixed.
///
/// --index decodes every blob and compares it with the table of contents and the index in its header. A blob that was
/// damaged on disk differs from its content hash. --index also counts the blobs that are compressed in segments, which
/// allows an edit to copy the segments that do not change.
///
/// --areas finds what `pbfhogg export --geometry-types polygon` would leave out: multipolygons, boundaries and closed
/// ways from which no polygon can be made, with the reason and the place. It also lists mistakes that do not change an
/// area, such as wrong roles, and relations of which a part is not in the file. Neither affects the exit status.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg check planet.osm.pbf
  pbfhogg check --refs -r extract.osm.pbf
  pbfhogg check --refs --show-ids --max-errors 0 extract.osm.pbf > missing.txt
  pbfhogg check --ids --full unsorted.osm.pbf
  pbfhogg check --index backup.osm.pbf
  pbfhogg check --areas --doubled berlin.osm.pbf -o errors.geojson")]
pub struct Args {
    /// Input file; - is standard input
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// Check that ids are in canonical order and unique
    #[arg(long)]
    ids: bool,
    /// Check that the nodes of ways, or their locations, are in the file
    #[arg(long)]
    refs: bool,
    /// Find duplicate ids even in a file that is not sorted, and faults in all objects
    #[arg(long)]
    full: bool,
    /// Check that all blobs can be read and match the indexes of the file
    #[arg(long)]
    index: bool,
    /// Find broken multipolygons, boundaries and closed ways
    #[arg(long)]
    areas: bool,
    /// Find nodes and ways at the place of another one with the same tags, and keys that an object has twice
    #[arg(long)]
    doubled: bool,
    /// File for the places of the problems of --areas and --doubled: points, and lines where segments are concerned
    ///
    /// The name tells the format: .geojson, .geojsonseq, .csv, .txt or .pg, also with .gz, .bz2 or .zst.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the output file if it exists
    #[arg(short = 'O', long, requires = "output")]
    overwrite: bool,
    /// Also check that the members of relations are in the file
    #[arg(short = 'r', long)]
    check_relations: bool,
    /// Print each reference to a missing object, as "n17 in w4"
    #[arg(short = 'i', long)]
    show_ids: bool,
    /// List at most N violations of each kind; 0 lists all [default: 100; check-refs: 0]
    #[arg(long, value_name = "N")]
    max_errors: Option<usize>,
    #[command(flatten)]
    kinds: KindArgs,
    #[command(flatten)]
    run: RunArgs,
}

pub fn run(session: &Session, args: &Args, refs_only: bool) -> Result<CommandAnswer> {
    let ctx = args.run.context(session);
    let refs = args.refs || refs_only;
    let ids = args.ids || args.full;
    let both = !refs && !ids && !args.index && !args.areas && !args.doubled;
    let problem_file = problem_file(session, args)?;
    let stdout = match &problem_file {
        Some(file) if file.target.is_stream() => Stdout::Taken,
        _ => Stdout::Answer,
    };
    let options = check::Options {
        input: args.input.clone(),
        ids: ids || both,
        full: args.full,
        places: both || args.full,
        refs: refs || both || args.check_relations,
        // Under the name osmium, `check-refs` counts a node as missing even if the way stores the location of the node.
        needs_nodes: refs_only && session.conventions.reports_like_osmium,
        relations: args.check_relations,
        index: args.index,
        areas: args.areas,
        doubled: args.doubled,
        problem_file,
        kinds: args.kinds.kind_set(),
        max_listed: match args.max_errors.unwrap_or(if refs_only { 0 } else { 100 }) {
            0 => usize::MAX,
            most => most,
        },
    };
    let mut summary = check::run(&options, &ctx)?;
    if refs_only && session.conventions.reports_like_osmium && args.run.json.is_none() {
        let mut ids = String::new();
        if args.show_ids {
            // osmium reports missing relations last, after it has read all relations, and in the order of their ids.
            let to_relations = |dangling: &&Dangling| dangling.kind == ObjectKind::Relation;
            let from = summary.listed_refs.iter().rev().take_while(to_relations);
            let start = summary.listed_refs.len() - from.count();
            summary.listed_refs[start..].sort_by_key(|dangling| (dangling.id, dangling.in_id));
            put_dangling_references(&mut ids, &summary);
        }
        session.print(&ids)?;
        session.print_to_stderr(&osmium_text(args, &summary));
        ctx.observer.finished();
    } else {
        let report = || report_text(args, &summary);
        session.report(&args.run, &ctx, &summary, stdout, report)?;
    }
    Ok(CommandAnswer::yes_if(summary.is_sound()))
}

/// Returns the problem file that --output names.
fn problem_file(session: &Session, args: &Args) -> Result<Option<ProblemFile>> {
    let Some(path) = &args.output else {
        return Ok(None);
    };
    if !args.areas && !args.doubled {
        bail!("--output is the file for the problems of --areas and --doubled: say one of them");
    }
    let (format, compression) = format_of(session, None, path)?;
    let target = text_target(session, path, args.overwrite)?;
    let mut options = FeatureOptions::new(format);
    options.compression = compression;
    Ok(Some(ProblemFile::new(target, options)))
}

/// Returns the report that osmium's `check-refs` prints.
fn osmium_text(args: &Args, summary: &Summary) -> String {
    let counts = [summary.nodes, summary.ways, summary.relations].map(Option::unwrap_or_default);
    let [nodes, ways, relations] = counts;
    let mut out =
        format!("There are {nodes} nodes, {ways} ways, and {relations} relations in this file.\n");
    let Some(missing) = &summary.missing else {
        return out;
    };
    let lines = [
        ("Nodes     in ways     ", missing.nodes_in_ways),
        ("Nodes     in relations", missing.nodes_in_relations),
        ("Ways      in relations", missing.ways_in_relations),
        ("Relations in relations", missing.relations_in_relations),
    ];
    if !args.check_relations {
        let count = missing.nodes_in_ways.unwrap_or(0);
        let _ = writeln!(out, "Nodes in ways missing: {count}");
        return out;
    }
    for (name, count) in lines {
        let _ = writeln!(out, "{name} missing: {}", count.unwrap_or(0));
    }
    out
}

fn report_text(args: &Args, summary: &Summary) -> String {
    let mut out = String::new();
    if args.show_ids {
        put_dangling_references(&mut out, summary);
    }
    let path = display_path(&args.input);
    if let Some(index) = &summary.index {
        put_index(&mut out, &path.to_string(), index);
    }
    if summary.nodes.is_some() {
        put_object_findings(&mut out, args, summary);
    }
    check_areas::put_area_findings(&mut out, summary);
    out
}

/// Appends the findings about ids, contents, references and locations.
fn put_object_findings(out: &mut String, args: &Args, summary: &Summary) {
    let path = display_path(&args.input);
    let counts = [summary.nodes, summary.ways, summary.relations].map(Option::unwrap_or_default);
    let _ = writeln!(out, "{path}: {}", show::kinds(counts));
    if summary.out_of_order.is_some()
        || summary.duplicates.or(summary.duplicates_in_a_row).is_some()
    {
        put_ids(out, summary);
    }
    put_contents(out, summary);
    if let Some(missing) = &summary.missing {
        put_missing(out, missing);
    }
    put_locations(out, args, summary);
}

/// Appends the listed references to missing objects.
fn put_dangling_references(out: &mut String, summary: &Summary) {
    for dangling in &summary.listed_refs {
        let [kind, in_kind] = [dangling.kind, dangling.in_kind].map(ObjectKind::letter);
        let _ = writeln!(out, "{kind}{} in {in_kind}{}", dangling.id, dangling.in_id);
    }
    let missing = summary.missing.map_or(0, |missing| missing.total());
    put_left_out(out, missing, summary.listed_refs.len());
}

/// Appends the listed violations of the order and uniqueness of ids, and the total numbers of violations.
fn put_ids(out: &mut String, summary: &Summary) {
    for violation in &summary.listed_ids {
        let letter = violation.kind.letter();
        let problem = if violation.duplicate {
            "occurs again"
        } else {
            "is out of order"
        };
        let (id, blob) = (violation.id, violation.blob);
        let _ = writeln!(out, "  {letter}{id} in blob {blob} {problem}");
    }
    put_left_out(out, summary.id_violations(), summary.listed_ids.len());
    let Some(out_of_order) = summary.out_of_order else {
        put_ids_of_spatial_layout(out, summary);
        return;
    };
    let disorder = show::number(out_of_order);
    let _ = match (summary.duplicates, summary.duplicates_in_a_row) {
        (Some(0), _) if out_of_order == 0 => writeln!(out, "ids: in order, none twice"),
        (Some(duplicates), _) => writeln!(
            out,
            "ids: {disorder} out of order, {} that occur again",
            show::number(duplicates)
        ),
        (None, in_a_row) => {
            let in_a_row = in_a_row.filter(|count| *count > 0);
            let in_a_row = in_a_row.map_or(String::new(), |count| {
                format!(", {} equal to the id before", show::number(count))
            });
            writeln!(
                out,
                "ids: {disorder} out of order{in_a_row}\n\
                 ids that occur again: not checked: the file is not sorted; --full checks it"
            )
        }
    };
}

/// Appends the result of the id check for a spatial layout, in which ids have no order.
fn put_ids_of_spatial_layout(out: &mut String, summary: &Summary) {
    let order = "ids: in a spatial layout, which orders objects by their places";
    let _ = match (summary.duplicates, summary.duplicates_in_a_row.unwrap_or(0)) {
        (Some(0), _) => writeln!(out, "{order}; none twice"),
        (Some(again), _) => writeln!(out, "{order}; {} that occur again", show::number(again)),
        (None, in_a_row) => {
            let in_a_row = match in_a_row {
                0 => String::new(),
                count => format!("; {} equal to the id before", show::number(count)),
            };
            writeln!(
                out,
                "{order}{in_a_row}\nids that occur again: not checked: --full checks it"
            )
        }
    };
}

/// Appends the listed nodes outside of the world and the listed faults of the contents, with their total numbers.
fn put_contents(out: &mut String, summary: &Summary) {
    let (outside, faults) = (summary.outside.unwrap_or(0), summary.faults.unwrap_or(0));
    for node in &summary.listed_outside {
        let _ = writeln!(
            out,
            "  n{} in blob {} is outside of the world: latitude {}, longitude {}",
            node.id, node.blob, node.lat, node.lon
        );
    }
    put_left_out(out, outside, summary.listed_outside.len());
    put_count(out, "nodes outside of the world", outside);
    for fault in &summary.listed_faults {
        let what = &fault.what;
        let _ = match (fault.kind, fault.id, fault.blob) {
            (Some(kind), Some(id), blob) => {
                writeln!(out, "  {}{id} in blob {blob}: {what}", kind.letter())
            }
            (_, _, 0) => writeln!(out, "  {what}"),
            (_, _, blob) => writeln!(out, "  blob {blob}: {what}"),
        };
    }
    put_left_out(out, faults, summary.listed_faults.len());
    put_count(out, "faults of the contents", faults);
    let inexpressible =
        "strings with characters that XML does not know, such as control characters";
    put_count(out, inexpressible, summary.inexpressible.unwrap_or(0));
    let repeated_keys = "tags with a key that the object has already";
    put_count(out, repeated_keys, summary.repeated_keys.unwrap_or(0));
}

/// Appends the number of missing objects for each kind of reference that was checked.
fn put_missing(out: &mut String, missing: &Missing) {
    let lines = [
        ("nodes in ways", missing.nodes_in_ways),
        ("nodes in relations", missing.nodes_in_relations),
        ("ways in relations", missing.ways_in_relations),
        ("relations in relations", missing.relations_in_relations),
    ];
    for (objects, count) in lines {
        if let Some(count) = count {
            let _ = writeln!(out, "{objects} missing: {}", show::number(count));
        }
    }
}

/// Appends the contradictions between the locations in ways and those of the nodes, the form of the file and, if its
/// ways have locations, the numbers of known and unknown locations.
fn put_locations(out: &mut String, args: &Args, summary: &Summary) {
    for found in &summary.listed_contradictions {
        let _ = writeln!(
            out,
            "  w{} stores another location of n{} than the node has",
            found.in_id, found.id
        );
    }
    put_left_out(
        out,
        summary.contradicting(),
        summary.listed_contradictions.len(),
    );
    let Some(form) = summary.form else { return };
    let _ = writeln!(out, "form: {form}");
    let Some(found) = summary.locations.filter(|_| form != "plain") else {
        return;
    };
    let _ = writeln!(
        out,
        "locations of the nodes of ways: {} known, {} of them only by the ways, {} unknown",
        show::number(found.known()),
        show::number(found.stored),
        show::number(found.unknown),
    );
    let _ = match found.contradicting {
        Some(count) => writeln!(
            out,
            "locations in ways other than those of the nodes: {}",
            show::number(count)
        ),
        None => {
            let hint = if args.full {
                ""
            } else {
                ": --full compares them"
            };
            writeln!(
                out,
                "locations in ways other than those of the nodes: not checked{hint}"
            )
        }
    };
    if let Some(unused) = summary.unused_nodes {
        let _ = writeln!(
            out,
            "nodes without tags that no way and no relation has yet: {}",
            show::number(unused)
        );
    }
}

/// The advice for a damaged file.
const REPAIR: &str = "`pbfhogg repair` writes a file of all that is whole";

fn put_index(out: &mut String, path: &str, index: &IndexCheck) {
    let _ = writeln!(
        out,
        "{path}: {}; {} in the table of contents, {} of them with a hash of their content; {} with an index of their own; {} with segments",
        show::counted(index.blobs, "blob"),
        show::number(index.in_table),
        show::number(index.hashed),
        show::number(index.with_blob_index),
        show::number(index.with_segments),
    );
    if index.in_id_table > 0 {
        let objects = show::counted(index.in_id_table, "object");
        let _ = writeln!(out, "{path}: {objects} in the table of ids");
    }
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
    let remedy = if index.spatial_layout {
        "`pbfhogg sort`, then `pbfhogg repack --layout hilbert`, make the file anew"
    } else {
        "`pbfhogg cat --force` makes a new index"
    };
    let _ = match (index.damaged, index.differences) {
        (0, 0) if index.blobs == 0 => writeln!(out, "index: no blobs to compare"),
        (0, 0) if index.in_table + index.with_blob_index == 0 => {
            writeln!(out, "index: none; every blob can be read")
        }
        (0, 0) => writeln!(out, "index: every blob matches its entry"),
        (damaged, 0) => writeln!(
            out,
            "index: {} damaged; {REPAIR}",
            show::counted(damaged, "blob")
        ),
        (0, differences) => writeln!(
            out,
            "index: {}; {remedy}",
            show::counted(differences, "difference")
        ),
        (damaged, differences) => writeln!(
            out,
            "index: {} damaged, {}; {REPAIR}",
            show::counted(damaged, "blob"),
            show::counted(differences, "difference")
        ),
    };
}

use super::session::Session;
use super::{CommandAnswer, show};
use crate::commands::augmented_diff::Selection;
use crate::commands::{apply_changes, cat, diff, inspect, synth};
use crate::engine::OutputOptions;
use crate::file::WriteOptions;
use crate::io::{OutputTarget, ScratchDirectory};
use crate::pbf::Element;
use crate::{Context, ElementReader};
use anyhow::{Result, bail};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::Instant;

const DAYS: u32 = 3;

/// Demonstrate a daily update on generated data
///
/// Indexes a file, applies change files to it, checks the result, and draws the changes on a page for a browser.
/// Without arguments, generates a world and three days of changes. Their outcome is known, and every object of the
/// result is compared with it. With arguments, uses your own files, which are only read. All files are written to
/// temporary directories. The page is kept there, and so is the result for your own files.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  pbfhogg demo
  pbfhogg demo berlin.osm.pbf 4711.osc.gz 4712.osc.gz")]
pub struct Args {
    /// The base: a PBF file
    #[arg(value_name = "BASE", requires = "changes")]
    base: Option<PathBuf>,
    /// Change files, applied in this order
    #[arg(value_name = "CHANGE")]
    changes: Vec<PathBuf>,
    /// Approximate number of objects in the generated world
    #[arg(
        long,
        alias = "elements",
        value_name = "N",
        default_value_t = 1_000_000,
        conflicts_with = "base"
    )]
    objects: u64,
}

pub fn run(session: &Session, args: &Args) -> Result<CommandAnswer> {
    let ctx = Context::default();
    let folder = ScratchDirectory::create(None)?;
    let job = Demonstration {
        folder: folder.path().to_owned(),
        objects: args.objects,
        ctx,
    };
    let (base, changes) = match &args.base {
        Some(base) => (base.clone(), args.changes.clone()),
        None => job.make_world_and_changes(session)?,
    };
    let indexed = job.index(session, &base)?;
    let updated = job.apply(session, &indexed, &changes)?;
    let is_good = job.check(session, &updated, args.base.is_none())?;
    let page = job.draw_page(session, &indexed, &updated)?;
    session.print(&format!(
        "\nWhat changed, to look at in a browser: {}\n",
        file_url(&page)
    ))?;
    if args.base.is_some() {
        let kept = folder.keep();
        session.print(&format!(
            "The result is {}\n",
            kept.join("updated.osm.pbf").display()
        ))?;
    } else {
        session.print("Now with your own files: pbfhogg demo BASE.osm.pbf CHANGE.osc.gz\n")?;
    }
    if !is_good {
        bail!("the result is not what it should be");
    }
    Ok(CommandAnswer::Yes)
}

/// Returns the URL of a file with an absolute path.
fn file_url(path: &Path) -> String {
    let path = path.display();
    if cfg!(windows) {
        format!("file:///{}", path.to_string().replace('\\', "/"))
    } else {
        format!("file://{path}")
    }
}

/// The steps of the demonstration. All steps write their files to one directory.
struct Demonstration {
    folder: PathBuf,
    /// The approximate number of objects of the synthetic world.
    objects: u64,
    ctx: Context,
}

impl Demonstration {
    /// Returns the options for generating the world after `day` days, with `changes` change files.
    fn world_options(&self, name: &str, day: u32, changes: u32) -> synth::Options {
        // The demonstration imitates files from other programs, and most of these have no table of contents.
        let write = WriteOptions {
            toc: false,
            ..WriteOptions::default()
        };
        let output = OutputOptions::file(self.folder.join(name))
            .overwrite()
            .write(write);
        synth::Options::new(self.objects, output)
            .day(day)
            .changes((changes > 0).then(|| (changes, self.folder.clone())))
    }

    fn make_world_and_changes(&self, session: &Session) -> Result<(PathBuf, Vec<PathBuf>)> {
        let started = Instant::now();
        let summary = synth::run(&self.world_options("world.osm.pbf", 0, DAYS), &self.ctx)?;
        print_step(
            session,
            "made",
            started,
            &format!(
                "a world of {} objects in {} towns ({}), and {DAYS} days of changes",
                show::number(summary.written.objects.unwrap_or(0)),
                summary.towns,
                show::bytes(summary.written.bytes)
            ),
        )?;
        let days = summary.days.into_iter().map(|day| day.path).collect();
        Ok((self.folder.join("world.osm.pbf"), days))
    }

    fn index(&self, session: &Session, base: &Path) -> Result<PathBuf> {
        let started = Instant::now();
        let output = self.folder.join("indexed.osm.pbf");
        let options = cat::Options::new(
            vec![base.to_owned()],
            OutputOptions::file(output.clone()).overwrite(),
        );
        let summary = cat::run(&options, &self.ctx)?;
        print_step(
            session,
            "indexed",
            started,
            &format!(
                "{} blobs with {} objects: from now on one read finds what is in each blob",
                show::number(summary.written.blobs),
                show::number(summary.written.objects.unwrap_or(0))
            ),
        )?;
        Ok(output)
    }

    fn apply(&self, session: &Session, base: &Path, changes: &[PathBuf]) -> Result<PathBuf> {
        let output = self.folder.join("updated.osm.pbf");
        let mut current = base.to_owned();
        for (number, change) in changes.iter().enumerate() {
            let started = Instant::now();
            let next = if number + 1 == changes.len() {
                output.clone()
            } else {
                self.folder.join(format!("day-{}.osm.pbf", number + 1))
            };
            let written = OutputOptions::file(next.clone()).overwrite();
            let options = apply_changes::Options::new(current, vec![change.clone()], written);
            let summary = apply_changes::run(&options, &self.ctx)?;
            print_step(
                session,
                "applied",
                started,
                &format!(
                    "{}: {}; {} blobs copied untouched, {} rewritten",
                    change.file_name().unwrap_or_default().to_string_lossy(),
                    show::changes([summary.created, summary.modified, summary.deleted]),
                    show::number(summary.blobs_copied),
                    show::number(summary.blobs_rewritten)
                ),
            )?;
            current = next;
        }
        Ok(output)
    }

    /// Writes a page that shows the changes from the indexed file to the updated one. Returns the path of the page,
    /// which is not removed at the end.
    fn draw_page(&self, session: &Session, indexed: &Path, updated: &Path) -> Result<PathBuf> {
        let started = Instant::now();
        let path = create_page_file()?;
        let page = OutputTarget::named_file(&path, true);
        let options = diff::Options::new(indexed, updated);
        let summary = super::diff::write_page(&options, Selection::default(), page, &self.ctx)?;
        let total = summary.total();
        print_step(
            session,
            "drew",
            started,
            &format!(
                "{} changed, {} are the same; {} blobs are equal and were not compared",
                show::counted(total.left + total.right + total.different, "object"),
                show::number(total.same),
                show::number(summary.blobs_equal)
            ),
        )?;
        Ok(path)
    }

    /// Whether the updated file is sorted and has an index. If `outcome_known`, its objects must also be equal to those
    /// of the synthetic world after the last day of changes.
    fn check(&self, session: &Session, updated: &Path, outcome_known: bool) -> Result<bool> {
        let started = Instant::now();
        let options = inspect::Options::new(updated.to_owned());
        let summary = inspect::run(&options, &self.ctx)?;
        let mut good = summary.sorted == Some(true) && summary.indexed;
        let mut text = format!(
            "{} objects, {}, {}",
            show::number(summary.objects),
            if summary.sorted == Some(true) {
                "sorted"
            } else {
                "NOT SORTED"
            },
            if summary.indexed {
                "indexed"
            } else {
                "NOT INDEXED"
            }
        );
        if outcome_known {
            let expected = self.folder.join("expected.osm.pbf");
            synth::run(&self.world_options("expected.osm.pbf", DAYS, 0), &self.ctx)?;
            let same = digest(updated)? == digest(&expected)?;
            good &= same;
            text += if same {
                "; every object is as it should be after three days"
            } else {
                "; OBJECTS DIFFER from what was expected"
            };
        }
        print_step(session, "checked", started, &text)?;
        Ok(good)
    }
}

/// Creates an HTML file that is not removed when the program ends.
fn create_page_file() -> crate::Result<PathBuf> {
    let failed = |error| crate::Error::io(&std::env::temp_dir(), "cannot make a file there", error);
    let page = tempfile::Builder::new()
        .prefix("pbfhogg-demo-")
        .suffix(".html")
        .tempfile();
    let (_, path) = page
        .map_err(failed)?
        .keep()
        .map_err(|error| failed(error.error))?;
    Ok(path)
}

/// Returns a hash of the ids, versions, locations, references and tags of all objects of a file. The order of the
/// objects does not matter. Uses all cores.
fn digest(path: &Path) -> crate::Result<u64> {
    ElementReader::from_path(path)?.par_map_reduce(
        |element| {
            let mut hasher = DefaultHasher::new();
            match &element {
                Element::Node(node) => {
                    (
                        0,
                        node.id(),
                        node.info().version,
                        node.decimicro_lat(),
                        node.decimicro_lon(),
                    )
                        .hash(&mut hasher);
                    node.tags().for_each(|tag| tag.hash(&mut hasher));
                }
                Element::Way(way) => {
                    (1, way.id(), way.info().version).hash(&mut hasher);
                    way.refs().for_each(|id| id.hash(&mut hasher));
                    way.tags().for_each(|tag| tag.hash(&mut hasher));
                }
                Element::Relation(relation) => {
                    (2, relation.id(), relation.info().version).hash(&mut hasher);
                    relation
                        .members()
                        .for_each(|member| (member.kind, member.id, member.role).hash(&mut hasher));
                    relation.tags().for_each(|tag| tag.hash(&mut hasher));
                }
            }
            hasher.finish()
        },
        || 0,
        u64::wrapping_add,
    )
}

/// Prints a line about a step that is done.
fn print_step(session: &Session, name: &str, started: Instant, text: &str) -> Result<()> {
    let seconds = started.elapsed().as_secs_f64();
    session.print(&format!(
        "{name:>8}  {seconds:>6.2} s  {text}
"
    ))
}

//! Times four tasks with pbfhogg and with three other crates that read PBF files, in turn, and compares the results.
//!
//! `beside-readers FILE [RUNS]`; the file should have the locations of nodes in its ways (`LocationsOnWays`). Each crate
//! uses its parallel reader. `taskset -c 0 beside-readers FILE` measures one core.

use std::error::Error;
use std::time::Instant;

/// The result of a task: a count, or a length in metres. `None` if the crate does not read what the task needs.
type Outcome = Result<Option<f64>, Box<dyn Error>>;

/// What is added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Task {
    /// The number of objects.
    Objects,
    /// The number of tags with the key `highway`.
    Tags,
    /// The number of references from ways to nodes.
    References,
    /// The lengths of ways, from the locations in them.
    Lengths,
}

impl Task {
    const ALL: [Self; 4] = [Self::Objects, Self::Tags, Self::References, Self::Lengths];
}

/// The number of tags with the key that is looked for.
fn count_tags<K: AsRef<str>>(keys: impl Iterator<Item = K>) -> f64 {
    keys.filter(|key| key.as_ref() == "highway").count() as f64
}

/// The length of a line through places in degrees, in metres, on a sphere in which degrees are flat.
fn length(places: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (mut last, mut sum) = (None::<(f64, f64)>, 0.0);
    for (lat, lon) in places {
        if let Some((before_lat, before_lon)) = last {
            let north = lat - before_lat;
            let east = (lon - before_lon) * lat.to_radians().cos();
            sum += (north * north + east * east).sqrt();
        }
        last = Some((lat, lon));
    }
    sum * 111_195.0
}

mod with_pbfhogg {
    use super::{Outcome, Task, count_tags, length};
    use pbfhogg::{Element, ElementReader, KindSet, ObjectKind};

    pub fn run(path: &str, task: Task) -> Outcome {
        let kinds = match task {
            Task::Objects | Task::Tags => KindSet::ALL,
            Task::References | Task::Lengths => KindSet::of(ObjectKind::Way),
        };
        let map = |element: &Element<'_>| match (task, element) {
            (Task::Objects, _) => 1.0,
            (Task::Tags, element) => count_tags(element.tags().map(|(key, _)| key)),
            (Task::References, Element::Way(way)) => way.refs().count() as f64,
            (Task::Lengths, Element::Way(way)) => {
                let places = way.nano_locations();
                length(places.map(|(lat, lon)| (lat as f64 * 1e-9, lon as f64 * 1e-9)))
            }
            _ => 0.0,
        };
        let reader = ElementReader::from_path(path)?.kinds(kinds);
        let sums = reader.par_fold(|| 0.0, |sum, element| *sum += map(&element))?;
        Ok(Some(sums.into_iter().sum()))
    }
}

mod with_osmpbf {
    use super::{Outcome, Task, count_tags, length};
    use osmpbf::{Element, ElementReader};

    pub fn run(path: &str, task: Task) -> Outcome {
        let map = |element: &Element<'_>| match (task, element) {
            (Task::Objects, _) => 1.0,
            (Task::Tags, Element::Node(node)) => count_tags(node.tags().map(|(key, _)| key)),
            (Task::Tags, Element::DenseNode(node)) => count_tags(node.tags().map(|(key, _)| key)),
            (Task::Tags, Element::Way(way)) => count_tags(way.tags().map(|(key, _)| key)),
            (Task::Tags, Element::Relation(relation)) => count_tags(relation.tags().map(|(key, _)| key)),
            (Task::References, Element::Way(way)) => way.refs().count() as f64,
            (Task::Lengths, Element::Way(way)) => {
                length(way.node_locations().map(|place| (place.lat(), place.lon())))
            }
            _ => 0.0,
        };
        let reader = ElementReader::from_path(path)?;
        Ok(Some(reader.par_map_reduce(|element| map(&element), || 0.0, |a, b| a + b)?))
    }
}

mod with_fast_osmpbf {
    use super::{Outcome, Task, count_tags};
    use fast_osmpbf::prelude::*;
    use fast_osmpbf::{ElementBlock, ElementFilter, OsmReader};

    pub fn run(path: &str, task: Task) -> Outcome {
        if task == Task::Lengths {
            return Ok(None);
        }
        let reader = OsmReader::from_path(path)?;
        if task == Task::References {
            reader.apply_element_filter(ElementFilter { nodes: false, ways: true, relations: false });
        }
        let sum = reader.par_blocks().map(|block| match (task, block) {
            (Task::Objects, ElementBlock::DenseNodeBlock(block)) => block.iter().count() as f64,
            (Task::Objects, ElementBlock::NodeBlock(block)) => block.iter().count() as f64,
            (Task::Objects, ElementBlock::WayBlock(block)) => block.iter().count() as f64,
            (Task::Objects, ElementBlock::RelationBlock(block)) => block.iter().count() as f64,
            (Task::Tags, ElementBlock::DenseNodeBlock(block)) => {
                block.iter().map(|node| count_tags(node.tags().map(|tag| tag.0))).sum()
            }
            (Task::Tags, ElementBlock::NodeBlock(block)) => {
                block.iter().map(|node| count_tags(node.tags().map(|tag| tag.0))).sum()
            }
            (Task::Tags, ElementBlock::WayBlock(block)) => {
                block.iter().map(|way| count_tags(way.tags().map(|tag| tag.0))).sum()
            }
            (Task::Tags, ElementBlock::RelationBlock(block)) => {
                block.iter().map(|relation| count_tags(relation.tags().map(|tag| tag.0))).sum()
            }
            (Task::References, ElementBlock::WayBlock(block)) => {
                block.iter().map(|way| way.node_ids().count() as f64).sum()
            }
            _ => 0.0,
        });
        Ok(Some(sum.sum()))
    }
}

mod with_osmpbfreader {
    use super::{Outcome, Task, count_tags};
    use osmpbfreader::{OsmObj, OsmPbfReader};

    pub fn run(path: &str, task: Task) -> Outcome {
        if task == Task::Lengths {
            return Ok(None);
        }
        let mut reader = OsmPbfReader::new(std::fs::File::open(path)?);
        let mut sum = 0.0;
        for object in reader.par_iter() {
            sum += match (task, object?) {
                (Task::Objects, _) => 1.0,
                (Task::Tags, object) => count_tags(object.tags().keys()),
                (Task::References, OsmObj::Way(way)) => way.nodes.len() as f64,
                _ => 0.0,
            };
        }
        Ok(Some(sum))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("give a FILE and, if you like, a number of runs")?;
    let runs = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let megabytes = std::fs::metadata(&path)?.len() as f64 / 1e6;
    let cores = std::thread::available_parallelism()?.get() as f64;
    type Run = fn(&str, Task) -> Outcome;
    let crates: [(&str, Run); 4] = [
        ("pbfhogg", with_pbfhogg::run),
        ("osmpbf", with_osmpbf::run),
        ("fast-osmpbf", with_fast_osmpbf::run),
        ("osmpbfreader", with_osmpbfreader::run),
    ];
    println!("{megabytes:.0} MB, {cores} cores");
    println!("| task | crate | s | MB/s a core | ratio |\n|---|---|---|---|---|");
    for task in Task::ALL {
        let mut times = [const { Vec::new() }; 4];
        let mut expected = None;
        for _ in 0..runs {
            for ((name, run), times) in crates.iter().zip(&mut times) {
                let start = Instant::now();
                let Some(found) = run(&path, task)? else {
                    continue;
                };
                times.push(start.elapsed().as_secs_f64());
                let expected = *expected.get_or_insert(found);
                if (found - expected).abs() > 1e-6 * expected.abs() {
                    return Err(format!("{task:?}: {name} finds {found} instead of {expected}").into());
                }
            }
        }
        let median = |times: &mut Vec<f64>| {
            times.sort_by(f64::total_cmp);
            times.get(times.len() / 2).copied()
        };
        let medians = times.each_mut().map(median);
        for ((name, _), median) in crates.iter().zip(medians) {
            if let (Some(seconds), Some(ours)) = (median, medians[0]) {
                let speed = megabytes / seconds / cores;
                let ratio = seconds / ours;
                println!("| {task:?} | {name} | {seconds:.2} | {speed:.0} | {ratio:.2} |");
            }
        }
    }
    Ok(())
}

//! Times three tasks with pbfhogg and with osmpbf, in turn, on one core and on all, and compares the results.
//!
//! `beside-osmpbf FILE [RUNS]`; the file should have the locations of nodes in its ways (`LocationsOnWays`).

use std::error::Error;
use std::time::Instant;

/// The result of a task: a count, or a length in metres.
type Outcome = Result<f64, Box<dyn Error>>;

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

mod ours {
    use super::{Outcome, length};
    use pbfhogg::{Element, ElementReader, KindSet, ObjectKind};

    fn sum(path: &str, parallel: bool, kinds: KindSet, map: impl Fn(&Element<'_>) -> f64 + Sync) -> Outcome {
        let reader = ElementReader::from_path(path)?.kinds(kinds);
        if parallel {
            let sums = reader.par_fold(|| 0.0, |sum, element| *sum += map(&element))?;
            return Ok(sums.into_iter().sum());
        }
        let mut sum = 0.0;
        reader.for_each(|element| sum += map(&element))?;
        Ok(sum)
    }

    pub fn count(path: &str, parallel: bool) -> Outcome {
        sum(path, parallel, KindSet::ALL, |_| 1.0)
    }

    pub fn tags(path: &str, parallel: bool) -> Outcome {
        let is_highway = |(key, _): &(&str, &str)| *key == "highway";
        sum(path, parallel, KindSet::ALL, |element| element.tags().filter(is_highway).count() as f64)
    }

    pub fn lengths(path: &str, parallel: bool) -> Outcome {
        sum(path, parallel, KindSet::of(ObjectKind::Way), |element| match element {
            Element::Way(way) => {
                let places = way.nano_locations();
                length(places.map(|(lat, lon)| (lat as f64 * 1e-9, lon as f64 * 1e-9)))
            }
            _ => 0.0,
        })
    }
}

mod theirs {
    use super::{Outcome, length};
    use osmpbf::{Element, ElementReader};

    fn sum(path: &str, parallel: bool, map: impl Fn(&Element<'_>) -> f64 + Sync) -> Outcome {
        let reader = ElementReader::from_path(path)?;
        if parallel {
            return Ok(reader.par_map_reduce(|element| map(&element), || 0.0, |a, b| a + b)?);
        }
        let mut sum = 0.0;
        reader.for_each(|element| sum += map(&element))?;
        Ok(sum)
    }

    pub fn count(path: &str, parallel: bool) -> Outcome {
        sum(path, parallel, |_| 1.0)
    }

    pub fn tags(path: &str, parallel: bool) -> Outcome {
        let is_highway = |(key, _): &(&str, &str)| *key == "highway";
        sum(path, parallel, |element| match element {
            Element::Node(node) => node.tags().filter(is_highway).count() as f64,
            Element::DenseNode(node) => node.tags().filter(is_highway).count() as f64,
            Element::Way(way) => way.tags().filter(is_highway).count() as f64,
            Element::Relation(relation) => relation.tags().filter(is_highway).count() as f64,
        })
    }

    pub fn lengths(path: &str, parallel: bool) -> Outcome {
        sum(path, parallel, |element| match element {
            Element::Way(way) => length(way.node_locations().map(|place| (place.lat(), place.lon()))),
            _ => 0.0,
        })
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("give a FILE and, if you like, a number of runs")?;
    let runs = arguments.next().map_or(Ok(5), |text| text.parse())?;
    type Task = fn(&str, bool) -> Outcome;
    let tasks: [(&str, Task, Task); 3] = [
        ("count", ours::count, theirs::count),
        ("tags", ours::tags, theirs::tags),
        ("lengths of ways", ours::lengths, theirs::lengths),
    ];
    println!("| task | cores | pbfhogg | osmpbf | ratio |\n|---|---|---|---|---|");
    for (name, ours, theirs) in tasks {
        for parallel in [false, true] {
            let mut times = [Vec::new(), Vec::new()];
            for _ in 0..runs {
                let mut found = [0.0; 2];
                for (at, task) in [ours, theirs].into_iter().enumerate() {
                    let start = Instant::now();
                    found[at] = task(&path, parallel)?;
                    times[at].push(start.elapsed().as_secs_f64());
                }
                let [ours, theirs] = found;
                if (ours - theirs).abs() > 1e-6 * theirs.abs() {
                    return Err(format!("{name}: {ours} and {theirs}").into());
                }
            }
            let [ours, theirs] = times.map(|mut times: Vec<f64>| {
                times.sort_by(f64::total_cmp);
                times[times.len() / 2]
            });
            let cores = if parallel { "all" } else { "one" };
            println!("| {name} | {cores} | {ours:.2} s | {theirs:.2} s | {:.2} |", ours / theirs);
        }
    }
    Ok(())
}

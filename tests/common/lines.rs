//! Lines of relations, merged plainly.

use super::{Kind, Object};
use std::collections::HashMap;

/// A place: longitude and latitude in nanodegrees.
pub type Place = (i64, i64);

/// Returns the lines of a relation: its member ways in order, each joined to the line before it where their ends meet.
/// Platforms and stops are left out, and so are ways that are not in the file.
pub fn lines_of(relation: &Object, ways: &HashMap<i64, Vec<Option<Place>>>) -> Vec<Vec<Place>> {
    let mut lines: Vec<(Vec<Place>, bool)> = Vec::new();
    for (kind, id, role) in &relation.members {
        if *kind != Kind::Way || role.starts_with("platform") || role.starts_with("stop") {
            continue;
        }
        let Some(places) = ways.get(id) else { continue };
        let Some(mut way) = places.iter().copied().collect::<Option<Vec<Place>>>() else {
            continue;
        };
        way.dedup();
        if way.len() < 2 {
            continue;
        }
        let ends = [way[0], way[way.len() - 1]];
        let mut is_joined = false;
        if let Some((line, is_single)) = lines.last_mut() {
            if *is_single && !ends.contains(&line[line.len() - 1]) && ends.contains(&line[0]) {
                line.reverse();
            }
            let end = line[line.len() - 1];
            if ends.contains(&end) {
                if ends[0] != end {
                    way.reverse();
                }
                line.extend(&way[1..]);
                *is_single = false;
                is_joined = true;
            }
        }
        if !is_joined {
            lines.push((way, true));
        }
    }
    lines.into_iter().map(|(line, _)| line).collect()
}

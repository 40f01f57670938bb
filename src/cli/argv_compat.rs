//! Rewrites command lines to a form that clap accepts.

use std::ffi::{OsStr, OsString};

/// Rewrites `--blocks N` as `--blocks=N`, because clap cannot tell an optional number from a file that follows the
/// option. For `geocode`, splits a place with a negative latitude, such as `-33.9,151.2`, into two words, because clap
/// takes such a place for an option.
pub fn rewrite(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut rewritten: Vec<OsString> = Vec::new();
    let mut are_options = true;
    for arg in args {
        are_options &= arg != "--";
        let is_geocode = rewritten.get(1).is_some_and(|command| command == "geocode");
        if let Some((lat, lon)) = split_southern_lat_lon(&arg).filter(|_| is_geocode && are_options)
        {
            rewritten.extend([lat.into(), lon.into()]);
            continue;
        }
        let is_number = || arg.to_str().is_some_and(|text| text.parse::<u32>().is_ok());
        match rewritten.last_mut() {
            Some(last) if are_options && last == "--blocks" && is_number() => {
                last.push("=");
                last.push(arg);
            }
            _ => rewritten.push(arg),
        }
    }
    rewritten
}

/// Splits a place with a negative latitude, such as `-33.9,151.2`.
fn split_southern_lat_lon(arg: &OsStr) -> Option<(&str, &str)> {
    let (lat, lon) = arg.to_str()?.split_once(',')?;
    let is_place =
        lat.starts_with('-') && [lat, lon].iter().all(|text| text.parse::<f64>().is_ok());
    is_place.then_some((lat, lon))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_blocks_and_southern_places_are_rewritten() {
        for (typed, expected) in [
            ("inspect --blocks 3 a.pbf", "inspect --blocks=3 a.pbf"),
            ("inspect --blocks a.pbf", "inspect --blocks a.pbf"),
            ("inspect --blocks", "inspect --blocks"),
            ("inspect -- --blocks 3", "inspect -- --blocks 3"),
            ("inspect -j 3 a.pbf", "inspect -j 3 a.pbf"),
            ("geocode index -33.9,-70.6", "geocode index -33.9 -70.6"),
            ("geocode index 47.1,9.5", "geocode index 47.1,9.5"),
            ("extract -b -1,50,0,51 a.pbf", "extract -b -1,50,0,51 a.pbf"),
            ("cat -1,2", "cat -1,2"),
        ] {
            let words = |text: &str| -> Vec<OsString> {
                let words = text.split(' ').map(OsString::from);
                [OsString::from("pbfhogg")]
                    .into_iter()
                    .chain(words)
                    .collect()
            };
            assert_eq!(rewrite(words(typed).into_iter()), words(expected));
        }
    }
}

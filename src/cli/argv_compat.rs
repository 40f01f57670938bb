//! Rewrites command lines to a form that clap accepts.

use std::ffi::OsString;

/// Rewrites `--blocks N` as `--blocks=N`, because clap cannot tell an optional number from a file that follows the
/// option.
pub fn rewrite(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut rewritten: Vec<OsString> = Vec::new();
    let mut are_options = true;
    for arg in args {
        are_options &= arg != "--";
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_number_of_blocks_is_rewritten() {
        for (typed, expected) in [
            ("inspect --blocks 3 a.pbf", "inspect --blocks=3 a.pbf"),
            ("inspect --blocks a.pbf", "inspect --blocks a.pbf"),
            ("inspect --blocks", "inspect --blocks"),
            ("inspect -- --blocks 3", "inspect -- --blocks 3"),
            ("inspect -j 3 a.pbf", "inspect -j 3 a.pbf"),
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

//! Rewrites command lines in the form of other programs to a form that clap accepts.

use std::ffi::OsString;

/// Rewrites the command line:
///
/// - `--blocks N` becomes `--blocks=N`, because the number is optional and a file may follow instead;
/// - in `fileinfo`, `-j` is `--json`, also among other letters, as in `-ej`;
/// - with `drops_force`, `--force` is left out, except in [`WITH_FORCE`]: scripts use it to allow work on files without
///   an index, which every command does.
pub fn rewrite(args: impl Iterator<Item = OsString>, drops_force: bool) -> Vec<OsString> {
    let mut rewritten: Vec<OsString> = Vec::new();
    let mut are_options = true;
    for arg in args {
        are_options &= arg != "--";
        let command = rewritten.get(1).and_then(|command| command.to_str());
        if drops_force
            && are_options
            && arg == "--force"
            && command.is_some_and(|command| !WITH_FORCE.contains(&command))
        {
            continue;
        }
        let is_fileinfo = rewritten
            .get(1)
            .is_some_and(|command| command == "fileinfo");
        let is_number = |text: &str| text.parse::<u32>().is_ok();
        match (arg.to_str(), rewritten.last_mut()) {
            (Some(number), Some(last))
                if are_options && last == "--blocks" && is_number(number) =>
            {
                last.push("=");
                last.push(number);
            }
            (Some(letters), _) if is_fileinfo && are_options && has_j(letters) => {
                rewritten.push("--json".into());
                let others = letters.replace('j', "");
                if others != "-" {
                    rewritten.push(others.into());
                }
            }
            _ => rewritten.push(arg),
        }
    }
    rewritten
}

/// The commands in which `--force` has a meaning.
const WITH_FORCE: [&str; 2] = ["cat", "build-geocode-index"];

/// Whether an argument is a group of single-letter options, one of which is `j`.
fn has_j(arg: &str) -> bool {
    arg.strip_prefix('-').is_some_and(|letters| {
        letters.contains('j') && letters.bytes().all(|byte| byte.is_ascii_lowercase())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_words_that_are_meant_are_rewritten() {
        for (typed, expected) in [
            ("inspect --blocks 3 a.pbf", "inspect --blocks=3 a.pbf"),
            ("inspect --blocks a.pbf", "inspect --blocks a.pbf"),
            ("inspect --blocks", "inspect --blocks"),
            ("inspect -j 3 a.pbf", "inspect -j 3 a.pbf"),
            ("fileinfo -j a.pbf", "fileinfo --json a.pbf"),
            ("fileinfo -ej a.pbf", "fileinfo --json -e a.pbf"),
            ("fileinfo --jobs 2 -e a.pbf", "fileinfo --jobs 2 -e a.pbf"),
            ("fileinfo - j", "fileinfo - j"),
            ("fileinfo -- -j", "fileinfo -- -j"),
            ("sort --force a.pbf", "sort a.pbf"),
            ("sort a.pbf --force", "sort a.pbf"),
            ("sort -- --force", "sort -- --force"),
            ("cat --force a.pbf", "cat --force a.pbf"),
            ("--force", "--force"),
        ] {
            let words = |text: &str| -> Vec<OsString> {
                let words = text.split(' ').map(OsString::from);
                [OsString::from("pbfhogg")]
                    .into_iter()
                    .chain(words)
                    .collect()
            };
            assert_eq!(rewrite(words(typed).into_iter(), true), words(expected));
            if typed.contains("--force") {
                assert_eq!(rewrite(words(typed).into_iter(), false), words(typed));
            }
        }
    }
}

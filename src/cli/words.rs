//! Names of commands and options that people type although they do not exist here, with hints that name the command
//! line to use instead.

use std::ffi::OsString;
use std::path::Path;

/// Declares names of commands that do not exist, each with a hint that names the command line for the same purpose.
macro_rules! words {
    ($($names:literal: $line:literal)*) => {
        const COMMANDS: &[(&str, &str)] = &[$(($names, $line),)*];
    };
}

words! {
    "info stats statistics summary describe list ls header": "`pbfhogg inspect FILE` shows what is in a file"
    "count": "`pbfhogg inspect FILE` has the numbers of objects, and `pbfhogg inspect tags FILE` those of tags"
    "head tail": "`pbfhogg inspect FILE` shows what is in a file, and `pbfhogg show FILE` its objects"
    "tags keys": "`pbfhogg inspect tags FILE` counts keys and tags"
    "convert conv transform write":
        "`pbfhogg cat FILE -o OUT.osm` converts between OSM formats, and `pbfhogg export FILE -o OUT.geojson` makes \
         GeoJSON, GeoParquet and tables"
    "geojson geoparquet parquet csv postgis postgres sql":
        "`pbfhogg export FILE -o OUT` makes GeoJSON, GeoParquet and tables"
    "view print get object node way relation": "`pbfhogg show FILE way/42` shows objects"
    "history versions log blame": "`pbfhogg show FILE way/42` shows all versions that a history file has of an object"
    "compare cmp": "`pbfhogg diff OLD NEW` compares files"
    "validate verify lint test fsck": "`pbfhogg check FILE` checks a file"
    "fix recover salvage": "`pbfhogg repair FILE -o OUT` saves what is whole in a damaged file"
    "filter query select search find grep tagsfilter":
        "`pbfhogg tags-filter FILE w/highway -o OUT` keeps the objects with a tag, and `pbfhogg getid` those with an \
         id"
    "bbox clip crop cut region": "`pbfhogg extract -b MIN_LON,MIN_LAT,MAX_LON,MAX_LAT FILE -o OUT` cuts out a region"
    "poly polygon":
        "`pbfhogg extract -p FILE.poly FILE -o OUT` cuts out a polygon, and `pbfhogg export FILE --filter \
         r/boundary=administrative -o OUT.geojson` writes those of boundaries"
    "index reindex toc":
        "`pbfhogg cat FILE -o OUT` writes a file with an index, and `pbfhogg build-geocode-index` makes one of \
         addresses"
    "dedupe dedup unique uniq": "`pbfhogg merge FILE -o OUT` keeps the highest version of each object"
    "join combine concat concatenate append": "`pbfhogg merge FILE FILE -o OUT` joins files, each object once"
    "apply patch": "`pbfhogg apply-changes BASE CHANGES -o OUT` applies change files"
    "sync pull fetch download replicate": "`pbfhogg update FILE` fetches and applies the changes of a server"
    "publish": "`pbfhogg diff -f osc OLD NEW -o CHANGES.osc.gz` writes change files, which any web server can publish"
    "map html plot render draw":
        "`pbfhogg inspect --html PAGE.html FILE` shows where the data is, and `pbfhogg export FILE -o OUT.geojson` \
         makes features for a map"
    "tiles tile mbtiles pmtiles vector-tiles":
        "`pbfhogg export FILE -f geojsonseq` makes features for a tile program, and `pbfhogg update FILE \
         --expire-tiles 12-16 --expire-output TILES` lists the tiles to draw again"
    "serve server": "`pbfhogg geocode INDEX --serve 127.0.0.1:8080` serves addresses"
    "reverse reverse-geocode address lookup": "`pbfhogg geocode INDEX LAT LON` finds the address of a place"
}

/// Returns a hint for a command that does not exist. The hint names the command line for the same purpose.
pub fn for_command(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase().replace('_', "-");
    let found = COMMANDS
        .iter()
        .find(|(names, _)| names.split(' ').any(|known| known == name));
    found.map(|(_, line)| *line)
}

/// Returns the message for a file name in the place of a command; `None` if the word does not look like a file name.
pub fn for_file(word: &str) -> Option<String> {
    let is_file = Path::new(word).is_file() || word.contains(['.', '/', '\\']);
    is_file.then(|| {
        format!("'{word}' is no command, and a command comes first: `pbfhogg inspect {word}` shows what is in a file")
    })
}

/// Returns a hint for an option that a command does not have. The hint names the option or the command line to use
/// instead.
pub fn for_option(name: &str, command: &clap::Command, option: &str) -> Option<String> {
    let has = |long: &str| {
        command
            .get_arguments()
            .any(|arg| arg.get_long() == Some(long))
    };
    match option {
        "--tags" | "--tag" | "--tags-filter" | "--where" | "--query" | "--expression" => Some(
            if has("filter") {
                "did you mean --filter? It takes an expression such as w/highway"
            } else {
                match name {
                    "inspect" => "`pbfhogg inspect tags FILE w/highway` counts tags",
                    "tags-filter" => {
                        "expressions follow the file: `pbfhogg tags-filter FILE w/highway`"
                    }
                    _ => "`pbfhogg tags-filter FILE w/highway -o OUT` keeps the objects with a tag",
                }
            }
            .to_owned(),
        ),
        "-o" | "--output" if has("html") => Some(format!(
            "the page is that of --html: `pbfhogg {name} --html PAGE.html FILE`"
        )),
        _ => None,
    }
}

/// Returns a hint for an argument that is one too many for a command. The hint says which option the argument probably
/// belongs to.
pub fn for_argument(name: &str, command: &clap::Command, argument: &str) -> Option<String> {
    let has = |short: char| {
        let mut args = command.get_arguments();
        args.any(|arg| arg.get_short() == Some(short) && arg.get_action().takes_values())
    };
    if has('b') && is_box(argument) {
        Some(format!(
            "a box follows -b: `pbfhogg {name} -b {argument} FILE`"
        ))
    } else if has('p') && is_polygon_file_name(argument) {
        Some(format!(
            "a polygon follows -p: `pbfhogg {name} -p {argument} FILE`"
        ))
    } else if has('o') && argument.contains('.') && !Path::new(argument).exists() {
        Some(format!(
            "an output follows -o: `pbfhogg {name} FILE -o {argument}`"
        ))
    } else {
        None
    }
}

/// Returns the first word that begins with `option` and is a box. If the first number of a box is negative, clap
/// mistakes the start of the box for an option: in `-1.5,50,-1,51`, it sees the option `-1`.
pub fn negative_box<'w>(words: &'w [OsString], option: &str) -> Option<&'w str> {
    let mut words = words.iter().filter_map(|word| word.to_str());
    words.find(|word| word.starts_with(option) && is_box(word))
}

/// Whether a text has four numbers, with commas between them.
fn is_box(text: &str) -> bool {
    text.split(',')
        .filter(|part| part.trim().parse::<f64>().is_ok())
        .count()
        == 4
}

fn is_polygon_file_name(text: &str) -> bool {
    let ending = Path::new(text)
        .extension()
        .and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| {
        ["poly", "geojson", "json"].contains(&ending.to_ascii_lowercase().as_str())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn no_word_in_the_table_is_the_name_of_a_command() {
        let program = super::super::Cli::command();
        let words = COMMANDS.iter().flat_map(|(names, _)| names.split(' '));
        let known: Vec<_> = words
            .filter(|word| program.find_subcommand(word).is_some())
            .collect();
        assert_eq!(known, Vec::<&str>::new());
    }

    #[test]
    fn every_suggested_command_line_names_a_command() {
        let program = super::super::Cli::command();
        for (names, text) in COMMANDS {
            for line in text.split('`').skip(1).step_by(2) {
                let command = line.split(' ').nth(1).unwrap();
                assert!(
                    program.find_subcommand(command).is_some(),
                    "{names:?}: {line}"
                );
            }
        }
    }

    #[test]
    fn four_numbers_are_a_box() {
        for (text, expected) in [
            ("9.5,47.1,9.6,47.2", true),
            ("-1,50, 0,51", true),
            ("9.5,47.1", false),
            ("a,b,c,d", false),
        ] {
            assert_eq!(is_box(text), expected, "{text}");
        }
    }
}

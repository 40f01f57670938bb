//! The words of the program for the advice of the library. They name commands and options.

use crate::error::Advice;
use crate::runtime::human_bytes;
use crate::{Error, ErrorKind};
use std::borrow::Cow;

/// Returns an error in words, with advice.
pub fn explain(error: &Error) -> String {
    let Some(advice) = error.advice() else {
        return error.to_string();
    };
    let mut message = joined(&error.to_string(), &advice);
    let is_damage = matches!(error, Error::Blob { .. }) && error.kind() == ErrorKind::Damaged;
    if is_damage && advice != Advice::Repair {
        message = joined(&message, &Advice::Repair);
    }
    message
}

/// Returns a message that is continued by advice: by a clause, or by a remark in parentheses.
pub fn joined(message: &str, advice: &Advice) -> String {
    let words = words(advice);
    let mark = if words.starts_with('(') { " " } else { "; " };
    format!("{message}{mark}{words}")
}

/// Returns advice in the words of the program.
fn words(advice: &Advice) -> Cow<'static, str> {
    match advice {
        Advice::LeaveFirstIdsOut([nodes, ways, relations]) => {
            format!("it goes on as with --start-id {nodes},{ways},{relations}: leave the option out")
                .into()
        }
        Advice::MaxAge(days) => format!("--max-age {days} gets them all the same").into(),
        Advice::AllowMemory(limit) => format!("--max-memory allows {}", human_bytes(*limit)).into(),
        Advice::AllowMemoryForIds(limit) => {
            format!("--max-memory {} leaves no more for them", human_bytes(*limit)).into()
        }
        Advice::PendingRecord(path) => format!(
            "the next run with --exec begins with its command; if it need not, remove {}",
            path.display()
        )
        .into(),
        Advice::NameServerOfStates(url) => format!(
            "name a server that has them with --server, or set the state of the file with `pbfhogg cat \
             --output-header osmosis_replication_sequence_number=N --output-header osmosis_replication_base_url={url}`"
        )
        .into(),
        _ => match WORDS.iter().find(|(known, _)| known == advice) {
            Some((_, words)) => Cow::Borrowed(words),
            None => advice.to_string().into(),
        },
    }
}

const WORDS: &[(Advice, &str)] = &[
    (
        Advice::AddLocations,
        "run `pbfhogg add-locations-to-ways` first",
    ),
    (
        Advice::AddLocationsKeepNodes,
        "run `pbfhogg add-locations-to-ways --keep-untagged-nodes` first",
    ),
    (
        Advice::AddToHistory,
        "--with-history (-H) adds the changes to its versions",
    ),
    (
        Advice::AddVersions,
        "`pbfhogg apply-changes -H` adds the versions of change files",
    ),
    (
        Advice::AllowShrinking,
        "--max-shrink 100 replaces it all the same",
    ),
    (
        Advice::FollowRegions,
        "`pbfhogg regions` cuts complete extracts, and their changes, out of the file with everything",
    ),
    (
        Advice::ApplyChanges,
        "`pbfhogg apply-changes BASE CHANGES -o OUTPUT` adds the changes to data",
    ),
    (
        Advice::ApplyChangesOrStateHistory,
        "`pbfhogg apply-changes BASE CHANGES -o OUTPUT` adds the changes to data; -F osh.pbf or -F osh.opl says that \
         the file is a history",
    ),
    (Advice::AskGeocodeIndex, "`pbfhogg geocode` asks it"),
    (
        Advice::BuildGeocodeIndex,
        "`pbfhogg build-geocode-index FILE --output-dir DIRECTORY` makes one",
    ),
    (
        Advice::BuildGeocodeIndexFirst,
        "`pbfhogg build-geocode-index FILE --output-dir DIRECTORY` makes one of an OSM file first",
    ),
    (
        Advice::ChooseCache,
        "move it away, or choose another --cache",
    ),
    (
        Advice::ChooseTempDirectory,
        "--temp-dir names another directory",
    ),
    (
        Advice::ContinueMap,
        "choose another directory, or use --overwrite (-O) to continue it as a map",
    ),
    (Advice::ConvertToPbf, "`pbfhogg cat` makes a PBF file of it"),
    (
        Advice::CutDataInstead,
        "`update --clip` keeps an extract up to date; `regions` makes extracts with change files out of data; -H cuts \
         out the objects that have a place in the file",
    ),
    (
        Advice::EndBySequence,
        "name a server that has them with --server, or end with --end-sequence instead of --end-date",
    ),
    (
        Advice::FetchAgain,
        "fetch it again; `pbfhogg repair` saves all that is whole",
    ),
    (
        Advice::GetOlderChanges,
        "get a newer file, or name a server that keeps older changes with --server",
    ),
    (
        Advice::IgnoreMissingNodes,
        "with --ignore-missing-nodes, such nodes are counted",
    ),
    (Advice::JoinFiles, "`pbfhogg cat FILE FILE` joins them"),
    (
        Advice::KeepLocations,
        "(--locations-on-ways keeps them up to date)",
    ),
    (
        Advice::KeepUntagged,
        "-n makes features of objects without tags, too",
    ),
    (
        Advice::LeaveCommandToNext,
        "if it has no --exec, to the next run that has",
    ),
    (
        Advice::LeaveMetadataOut,
        "`pbfhogg cat -f pbf,add_metadata=…` leaves metadata out before it",
    ),
    (
        Advice::LeaveObjectOut,
        "leave it out with `pbfhogg removeid`",
    ),
    (Advice::ListLeftOut, "-e lists them"),
    (
        Advice::ListRepeatedKeys,
        "`pbfhogg check --full` lists them",
    ),
    (
        Advice::Merge,
        "`pbfhogg merge FILE -o OUTPUT` keeps the highest version of each object",
    ),
    (Advice::NameServer, "name the server with --server"),
    (
        Advice::NotStrict,
        "without --strict, such nodes are counted",
    ),
    (
        Advice::PendingCommand,
        "the next update with --exec begins with the command",
    ),
    (
        Advice::RebuildGeocodeIndex,
        "build it again with `pbfhogg build-geocode-index`",
    ),
    (
        Advice::RebuildIndex,
        "rebuild the index with `pbfhogg cat --force`",
    ),
    (
        Advice::Recompress,
        "`pbfhogg repack --compression` changes all of them",
    ),
    (
        Advice::RenumberNodes,
        "give the nodes small ids with `pbfhogg renumber`, or use `pbfhogg add-locations-to-ways`, which needs no such \
         index",
    ),
    (
        Advice::Repair,
        "`pbfhogg repair` writes a file of all that is whole",
    ),
    (Advice::Replace, "use --overwrite (-O) to replace it"),
    (
        Advice::ReplaceGeocodeIndex,
        "build the index again with `pbfhogg build-geocode-index FILE -O --output-dir DIRECTORY`",
    ),
    (
        Advice::RepackByPlace,
        "(`pbfhogg sort`, then `pbfhogg repack --layout hilbert`, make a new one)",
    ),
    (Advice::ScanBlobs, "(`cat --force` looks at all blobs)"),
    (
        Advice::SetReplicationState,
        "--output-header sets another one",
    ),
    (
        Advice::SetTime,
        "set the time of the data with `pbfhogg cat --output-header \
         osmosis_replication_timestamp=2026-11-20T00:00:00Z`",
    ),
    (Advice::Sort, "run `pbfhogg sort` first"),
    (
        Advice::StateAtTime,
        "`pbfhogg time-filter FILE TIME` writes the state at a time",
    ),
    (Advice::TimeFilter, "run `pbfhogg time-filter` first"),
    (Advice::UpdateIndex, "use --update (-u) to change it"),
    (
        Advice::UseExternalIndex,
        "--index-type external gets by with less",
    ),
    (
        Advice::UseScratchElsewhere,
        "name another one with --temp-dir, if the command has it, or write the output to another one",
    ),
    (
        Advice::WriteChangesets,
        "`pbfhogg cat` writes them as osm or opl",
    ),
];

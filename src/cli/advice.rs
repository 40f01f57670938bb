//! The program's texts for the advice of the library. They name commands and options.

use crate::error::Advice;
use crate::runtime::human_bytes;
use crate::{Error, ErrorKind};
use std::borrow::Cow;

/// Returns the message of an error, followed by the advice if the error has any.
pub fn explain(error: &Error) -> String {
    let Some(advice) = error.advice() else {
        return error.to_string();
    };
    let mut message = with_advice(&error.to_string(), &advice);
    let is_damage = matches!(error, Error::Blob { .. }) && error.kind() == ErrorKind::Damaged;
    if is_damage && advice != Advice::Repair {
        message = with_advice(&message, &Advice::Repair);
    }
    message
}

/// Appends advice to a message, as a clause after a semicolon or as a remark in parentheses.
pub fn with_advice(message: &str, advice: &Advice) -> String {
    let words = advice_text(advice);
    let mark = if words.starts_with('(') { " " } else { "; " };
    format!("{message}{mark}{words}")
}

/// Returns the program's text for a piece of advice.
fn advice_text(advice: &Advice) -> Cow<'static, str> {
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

/// Declares the texts for the variants of [`Advice`] that have no values.
macro_rules! words {
    ($($advice:ident $words:literal)*) => {
        const WORDS: &[(Advice, &str)] = &[$((Advice::$advice, $words),)*];
    };
}

words! {
    AddLocations "run `pbfhogg add-locations-to-ways` first"
    AddLocationsKeepNodes "run `pbfhogg add-locations-to-ways --keep-untagged-nodes` first"
    AddToHistory "--with-history (-H) adds the changes to its versions"
    AddVersions "`pbfhogg apply-changes -H` adds the versions of change files"
    AllowShrinking "--max-shrink 100 replaces it all the same"
    FollowRegions "`pbfhogg regions` cuts complete extracts, and their changes, out of the file with everything"
    ApplyChanges "`pbfhogg apply-changes BASE CHANGES -o OUTPUT` adds the changes to data"
    ApplyChangesOrStateHistory "`pbfhogg apply-changes BASE CHANGES -o OUTPUT` adds the changes to data; -F osh.pbf \
        or -F osh.opl says that the file is a history"
    AskGeocodeIndex "`pbfhogg geocode` asks it"
    BuildGeocodeIndex "`pbfhogg build-geocode-index FILE --output-dir DIRECTORY` makes one"
    BuildGeocodeIndexFirst "`pbfhogg build-geocode-index FILE --output-dir DIRECTORY` makes one of an OSM file first"
    ChooseCache "move it away, or choose another --cache"
    ChooseTempDirectory "--temp-dir names another directory"
    ContinueMap "choose another directory, or use --overwrite (-O) to continue it as a map"
    ConvertToPbf "`pbfhogg cat` makes a PBF file of it"
    CutDataInstead "`update --clip` keeps an extract up to date; `regions` makes extracts with change files out of \
        data; -H cuts out the objects that have a place in the file"
    EndBySequence "name a server that has them with --server, or end with --end-sequence instead of --end-date"
    FetchAgain "fetch it again; `pbfhogg repair` saves all that is whole"
    GetOlderChanges "get a newer file, or name a server that keeps older changes with --server"
    IgnoreMissingNodes "with --ignore-missing-nodes, such nodes are counted"
    JoinFiles "`pbfhogg cat FILE FILE` joins them"
    KeepLocations "(--locations-on-ways keeps them up to date)"
    KeepUntagged "-n makes features of objects without tags, too"
    LeaveCommandToNext "if it has no --exec, to the next run that has"
    LeaveMetadataOut "`pbfhogg cat -f pbf,add_metadata=…` leaves metadata out before it"
    LeaveObjectOut "leave it out with `pbfhogg removeid`"
    ListLeftOut "-e lists them"
    ListRepeatedKeys "`pbfhogg check --full` lists them"
    Merge "`pbfhogg merge FILE -o OUTPUT` keeps the highest version of each object"
    NameServer "name the server with --server"
    NotStrict "without --strict, such nodes are counted"
    PendingCommand "the next update with --exec begins with the command"
    RebuildGeocodeIndex "build it again with `pbfhogg build-geocode-index`"
    RebuildIndex "rebuild the index with `pbfhogg cat --force`"
    Recompress "`pbfhogg repack --compression` changes all of them"
    RenumberNodes "give the nodes small ids with `pbfhogg renumber`, or use `pbfhogg add-locations-to-ways`, which \
        needs no such index"
    Repair "`pbfhogg repair` writes a file of all that is whole"
    Replace "use --overwrite (-O) to replace it"
    ReplaceGeocodeIndex "build the index again with `pbfhogg build-geocode-index FILE -O --output-dir DIRECTORY`"
    RepackByPlace "(`pbfhogg sort`, then `pbfhogg repack --layout hilbert`, make a new one)"
    ScanBlobs "(`cat --force` looks at all blobs)"
    SetReplicationState "--output-header sets another one"
    SetTime "set the time of the data with `pbfhogg cat --output-header \
        osmosis_replication_timestamp=2026-11-20T00:00:00Z`"
    Sort "run `pbfhogg sort` first"
    StateAtTime "`pbfhogg time-filter FILE TIME` writes the state at a time"
    TimeFilter "run `pbfhogg time-filter` first"
    UpdateIndex "use --update (-u) to change it"
    UseExternalIndex "--index-type external gets by with less"
    UseScratchElsewhere "name another one with --temp-dir, if the command has it, or write the output to another one"
    WriteChangesets "`pbfhogg cat` writes them as osm or opl"
}

//! Advice about errors and warnings. The library gives advice as data. The texts in this file are for users of the
//! library, so they name no options of the program. The program has its own texts, which name its options.

use std::fmt;
use std::path::PathBuf;

macro_rules! advice {
    ($($name:ident $(($field:ty))? $words:literal)*) => {
        /// Advice about an error or a warning. Its text is for users of the library.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Advice {
            $(#[doc = concat!("In words: ", $words, ".")] $name $(($field))?,)*
        }

        impl fmt::Display for Advice {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$name { .. } => $words,)*
                })
            }
        }
    };
}

advice! {
    AddLocations "add locations to the ways first"
    AddLocationsKeepNodes "add locations to the ways first, and keep untagged nodes"
    AddToHistory "apply the changes with their history"
    AddVersions "add the versions of change files to the history"
    AllowMemory(u64) "allow more memory"
    AllowMemoryForIds(u64) "allow more memory"
    AllowShrinking "allow a smaller output"
    ApplyChanges "apply the changes to data"
    ApplyChangesOrStateHistory "apply the changes to data, or state that the file is a history"
    AskGeocodeIndex "open the index to ask it"
    BuildGeocodeIndex "build an index of an OSM file"
    BuildGeocodeIndexFirst "build an index of the OSM file first"
    ChooseCache "move it away, or choose another cache"
    ChooseTempDirectory "choose another directory for temporary files"
    ContinueMap "choose another directory, or allow to continue it as a map"
    ConvertToPbf "convert it to a PBF file"
    CutDataInstead "update the extract, or apply the changes first, or cut out the objects that have a place in the file"
    EndBySequence "name a server that has them, or end with a sequence number instead of a time"
    FetchAgain "fetch it again, or repair it: that saves all that is whole"
    FollowRegions "regions that are cut out of the data with everything are complete"
    GetOlderChanges "get a newer file, or name a server that keeps older changes"
    IgnoreMissingNodes "such nodes are counted if missing nodes are ignored"
    JoinFiles "concatenate the files"
    KeepLocations "locations in ways can be kept up to date"
    KeepUntagged "features can be made of objects without tags, too"
    LeaveCommandToNext "a run without a command leaves it to the next run that has one"
    LeaveMetadataOut "leave metadata out in a step before"
    LeaveObjectOut "leave the object out"
    LeaveFirstIdsOut([i64; 3]) "leave the first ids out"
    ListLeftOut "a report lists them"
    ListRepeatedKeys "a full check lists them"
    MaxAge(i64) "allow older data to get them all the same"
    Merge "merge the file: that keeps the highest version of each object"
    NameServer "name the server"
    NameServerOfStates(String) "name a server that has them, or set the state of the file in its header"
    NotStrict "such nodes are counted if the command is not strict"
    PendingCommand "the next update with a command begins with it"
    PendingRecord(PathBuf) "the next run with a command begins with it; if it need not, remove the record"
    ReadRecord "make it readable, or remove it if the command need not run"
    RebuildGeocodeIndex "build the index again"
    RebuildIndex "make a new index of the file"
    Recompress "repack the file to change all of them"
    RenumberNodes "give the nodes small ids, or add locations to ways without an index"
    Repair "repair the file: that writes all that is whole"
    Replace "allow to replace it"
    ReplaceGeocodeIndex "build the index again, and allow to replace it"
    RepackByPlace "sort the file, and then repack it by place, to make a new one"
    ScanBlobs "scan all blobs"
    SetReplicationState "set another one in the header of the output"
    SetTime "set the time of the data in the header"
    SetTmpdir "set TMPDIR to a directory that can be written and has room"
    Sort "sort the file first"
    StateAtTime "write the state at a time, and use that"
    TimeFilter "write the state at a time first"
    UpdateAllNodes "where the locations exist, a file with all nodes has them: update that file, and add locations to it"
    UpdateIndex "allow to update it"
    UseExternalIndex "the external index type gets by with less"
    WriteChangesets "write them in a text format"
    UseScratchElsewhere "choose another directory for temporary files, or write the output to another one"
}

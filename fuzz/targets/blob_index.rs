#![no_main]

libfuzzer_sys::fuzz_target!(
    init: pbfhogg_fuzz::put_seeds("blob_index"),
    |bytes: &[u8]| pbfhogg_fuzz::holds("blob_index", bytes)
);

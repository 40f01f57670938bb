#![no_main]

libfuzzer_sys::fuzz_target!(
    init: pbfhogg_fuzz::put_seeds("region_file"),
    |bytes: &[u8]| pbfhogg_fuzz::holds("region_file", bytes)
);

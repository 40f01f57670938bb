#![no_main]

libfuzzer_sys::fuzz_target!(
    init: pbfhogg_fuzz::put_seeds("whole_file"),
    |bytes: &[u8]| pbfhogg_fuzz::holds("whole_file", bytes)
);

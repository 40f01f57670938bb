#![no_main]

libfuzzer_sys::fuzz_target!(
    init: pbfhogg_fuzz::put_seeds("change_file"),
    |bytes: &[u8]| pbfhogg_fuzz::holds("change_file", bytes)
);

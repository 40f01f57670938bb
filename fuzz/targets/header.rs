#![no_main]

libfuzzer_sys::fuzz_target!(
    init: pbfhogg_fuzz::put_seeds("header"),
    |bytes: &[u8]| pbfhogg_fuzz::holds("header", bytes)
);

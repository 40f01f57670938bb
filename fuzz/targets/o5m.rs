#![no_main]

libfuzzer_sys::fuzz_target!(
    init: pbfhogg_fuzz::put_seeds("o5m"),
    |bytes: &[u8]| pbfhogg_fuzz::holds("o5m", bytes)
);

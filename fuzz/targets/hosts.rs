#![no_main]

libfuzzer_sys::fuzz_target!(
    init: pbfhogg_fuzz::put_seeds("hosts"),
    |bytes: &[u8]| pbfhogg_fuzz::holds("hosts", bytes)
);

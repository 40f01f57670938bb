#![no_main]

libfuzzer_sys::fuzz_target!(
    init: pbfhogg_fuzz::put_seeds("extract_config"),
    |bytes: &[u8]| pbfhogg_fuzz::holds("extract_config", bytes)
);

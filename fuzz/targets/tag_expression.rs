#![no_main]

libfuzzer_sys::fuzz_target!(
    init: pbfhogg_fuzz::put_seeds("tag_expression"),
    |bytes: &[u8]| pbfhogg_fuzz::holds("tag_expression", bytes)
);

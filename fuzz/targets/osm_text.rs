#![no_main]

libfuzzer_sys::fuzz_target!(
    init: pbfhogg_fuzz::put_seeds("osm_text"),
    |bytes: &[u8]| pbfhogg_fuzz::holds("osm_text", bytes)
);

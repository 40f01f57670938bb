#![no_main]

libfuzzer_sys::fuzz_target!(
    init: pbfhogg_fuzz::put_seeds("id_table"),
    |bytes: &[u8]| pbfhogg_fuzz::holds("id_table", bytes)
);

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trifid_base_log::fuzz::segment(bytes));

#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| trifid_context_model::fuzz::selection(text));

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| trifid_context_model::fuzz::entity(bytes));

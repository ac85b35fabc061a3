#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pgwire::fuzz::traffic(data));

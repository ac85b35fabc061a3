#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let _ = settings::pooler::parse_ini(&text);
    let _ = settings::pooler::parse_toml(&text);
});

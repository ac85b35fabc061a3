use super::*;
use ::clock::unix_ms;
use std::fs::{File, FileTimes};
use std::time::{Duration, SystemTime};

fn data() -> (tempfile::TempDir, DataFolder) {
    let folder = tempfile::tempdir().unwrap();
    let data = DataFolder::create(folder.path()).unwrap();
    (folder, data)
}

#[test]
fn a_taken_port_is_told_with_who_wanted_it_and_where_it_is_set() {
    let (_folder, data) = data();
    let mut settings = Settings::load_or_write(&data, None, None).unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    settings.ports.relay = taken.local_addr().unwrap().port();
    let findings = ports(&data, &settings);
    assert_eq!(findings.len(), 1);
    let text = findings[0].to_string();
    assert!(text.contains(&settings.ports.relay.to_string()) && text.contains("ports.relay"), "{text}");
    drop(taken);
    assert!(ports(&data, &settings).is_empty());
}

#[test]
fn little_disk_is_a_warning_and_next_to_none_an_error() {
    let (_folder, data) = data();
    assert_eq!(free_disk(&data, GOOD_DISK), None);
    assert_eq!(free_disk(&data, GOOD_DISK - 1).unwrap().severity, Severity::Warning);
    assert_eq!(free_disk(&data, LEAST_DISK - 1).unwrap().severity, Severity::Error);
}

#[test]
fn a_clock_that_went_back_is_told() {
    let (_folder, data) = data();
    let now_ms = unix_ms();
    assert_eq!(clock(&data, now_ms), None);
    assert!(clock(&data, EARLIEST_MS - 1).is_some());
    let file = File::create(data.file(crate::state::STATE)).unwrap();
    let ahead = SystemTime::UNIX_EPOCH + Duration::from_millis(now_ms + 3_600_000);
    file.set_times(FileTimes::new().set_modified(ahead)).unwrap();
    assert!(clock(&data, now_ms).unwrap().cause.contains("3600 s"));
}

#[test]
fn few_descriptors_are_a_warning_and_next_to_none_an_error() {
    assert_eq!(descriptors(GOOD_DESCRIPTORS), None);
    assert_eq!(descriptors(1_024).unwrap().severity, Severity::Warning);
    assert_eq!(descriptors(256).unwrap().severity, Severity::Error);
}

#[test]
fn a_folder_too_deep_for_a_socket_is_told() {
    let (folder, data) = data();
    assert_eq!(socket_path(&data), None);
    let deep = DataFolder::create(&folder.path().join("x".repeat(90))).unwrap();
    assert_eq!(socket_path(&deep).unwrap().severity, Severity::Error);
}

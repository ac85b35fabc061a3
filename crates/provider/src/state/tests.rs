use super::*;
use std::os::unix::fs::PermissionsExt as _;

fn folder() -> (tempfile::TempDir, StateFolder) {
    let base = tempfile::tempdir().unwrap();
    let state = StateFolder::open(&base.path().join("state")).unwrap();
    (base, state)
}

#[test]
fn the_folder_and_what_is_in_it_are_for_their_owner_only() {
    let (_base, state) = folder();
    state.keep_wishes(&Wishes::default()).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(state.path()), 0o700);
    assert_eq!(mode(&state.path().join("wishes.json")), 0o600);
}

#[test]
fn a_folder_that_others_can_read_is_refused() {
    let (_base, state) = folder();
    fs::set_permissions(state.path(), fs::Permissions::from_mode(0o750)).unwrap();
    assert!(matches!(StateFolder::open(state.path()), Err(StateError::Open(_))));
}

#[test]
fn damage_is_named_and_costs_no_more_than_it_must() {
    let (_base, state) = folder();
    for name in ["held.json", "usage.json"] {
        fs::write(state.path().join(name), "{half").unwrap();
    }
    assert!(matches!(state.held(), Err(StateError::Damaged { .. })));
    assert_eq!(state.usage(), Usage::default(), "a lost count is no reason to stand still");
}

#[test]
fn what_is_kept_comes_back() {
    let (_base, state) = folder();
    let wishes = Wishes { paused: true, month: Some(MonthCap::Bytes(5)) };
    state.keep_wishes(&wishes).unwrap();
    assert_eq!(state.wishes().unwrap(), wishes);
    let held = Held {
        code: "revoked".to_owned(),
        cause: "by the operator".to_owned(),
        at_ms: 1,
        version: "0".to_owned(),
    };
    state.hold(&held).unwrap();
    assert_eq!(state.held().unwrap(), Some(held));
    state.release().unwrap();
    state.release().unwrap();
    assert_eq!(state.held().unwrap(), None);
}

use super::*;

fn names(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn the_last_relay_is_tried_first_and_then_all_in_turn() {
    let known = names(&["a:1", "b:1"]);
    let mut relays = Relays::default();
    assert_eq!(relays.next(&known).as_deref(), Some("a:1"));
    relays.welcome("b:1", &names(&["b:1", "c:1"]));
    let order: Vec<_> = (0..7).map(|_| relays.next(&known).unwrap()).collect();
    assert_eq!(order, names(&["b:1", "b:1", "c:1", "a:1", "b:1", "c:1", "a:1"]));
    assert_eq!(Relays::default().next(&[]), None);
}

#[test]
fn a_relay_that_drains_is_not_dialled_again_at_once() {
    let mut relays = Relays::default();
    relays.welcome("a:1", &[]);
    relays.drain(names(&["a:1", "b:1"]));
    assert_eq!(relays.next(&names(&["a:1"])).as_deref(), Some("b:1"));
}

use super::*;

#[test]
fn smoke() {
    let loaded = parse_ini("[databases]\na = host=127.0.0.1 port=5433 password='x''y' pool_size=5\n* = host=/run\n[pgbouncer]\npool_mode = transaction\nlisten_addr = 127.0.0.1, ::1\nauth_type = trust\n").unwrap();
    println!("{:#?}", loaded);
    println!("{}", crate::diagnostic::to_text(&loaded.notes));
    for row in show_config(&loaded.config) {
        println!("{row:?}");
    }
    let bad = parse_ini("[databases]\na = host=127.0.0.1 prt=5433 password='x''y pool_size=5\n[pgbouncer]\nlisten_adr = 127.0.0.1, ::1\nauth_type = hba\nmax_client_conn = 5 ; x\nreserve_pool_size=5\npool_mode=session\nclient_patience=5\n").unwrap_err();
    println!("{}", crate::diagnostic::to_text(&bad));
    println!("{}", crate::diagnostic::to_json(&bad));
}

//! Every path of the api, who may use it, and what it is for.

use axum::http::Method;
use trust::Role::{App, Provider, Proxy};
use trust::api::path;

use super::{BODY_MAX, Route};
use crate::access::Access::{Account, Client, ClientOrAccount, Operator, Public, Renewing};
use crate::handlers::{accounts, clients, contracts, finding, grants, health, joining, pools, proxies};

/// The longest report of exits.
const EXITS_MAX: usize = 256 * 1024;

macro_rules! route {
    ($method:ident $path:ident, $access:expr, $handler:path, $summary:literal) => {
        route!($method $path, $access, $handler, $summary, BODY_MAX)
    };
    ($method:ident $path:ident, $access:expr, $handler:path, $summary:literal, $body_max:expr) => {
        Route {
            method: Method::$method,
            path: path::$path,
            access: $access,
            body_max: $body_max,
            summary: $summary,
            handler: |context| Box::pin($handler(context)),
        }
    };
}

/// The table.
pub(crate) fn routes() -> Vec<Route> {
    vec![
        route!(GET STATUS, Public, health::status, "Alive, whatever the database does"),
        route!(GET READY, Public, health::ready, "Able to serve, which needs the database"),
        route!(GET TRUST, Public, joining::trust, "The signed key ring and revocation list"),
        route!(POST CLIENTS, Public, joining::register, "Register a client with a join code"),
        route!(GET CLIENTS, Account, clients::list, "The account's clients; all for an operator"),
        route!(POST CLIENT_DISABLE, Account, clients::disable, "No new tokens for a client"),
        route!(POST CLIENT_ENABLE, Account, clients::enable, "Let a disabled client in again"),
        route!(POST CLIENT_REVOKE, Account, clients::revoke, "Disable a client and put it on the revocation list"),
        route!(POST TOKEN, Renewing, joining::refresh, "A fresh token"),
        route!(POST CONTRACTS, Client(&[App, Proxy]), contracts::admit, "A block of bytes held on a grant"),
        route!(POST CONTRACT_CLOSE, Client(&[App, Proxy]), contracts::close, "Give back what is left of a block"),
        route!(GET CANDIDATES, Client(&[App, Proxy]), finding::candidates, "Connected providers in random order"),
        route!(GET POOLS, Client(&[App, Proxy]), pools::manifest, "The newest generation of pools: its signed manifest, and whether it is stale"),
        route!(GET POOL, Client(&[App, Proxy]), pools::blob, "The bytes of a pool by their hash; they never change"),
        route!(GET LOCATIONS, ClientOrAccount(&[App, Proxy, Provider]), finding::locations, "Connected providers by country"),
        route!(GET PROXY_LOGIN, Client(&[Proxy]), proxies::login, "What a proxy needs to let a customer in"),
        route!(POST EXITS, Client(&[Proxy]), proxies::exits, "Who used which provider when, for abuse look-ups", EXITS_MAX),
        route!(POST SESSION, Public, accounts::sign_in, "Sign in with account and password"),
        route!(DELETE SESSION, Account, accounts::sign_out, "Sign out"),
        route!(GET ACCOUNTS, Account, accounts::show, "The account that is signed in"),
        route!(POST ACCOUNTS, Operator, accounts::create, "A new account"),
        route!(POST ACCOUNT_DISABLE, Operator, accounts::disable, "Disable an account and all its clients"),
        route!(POST ACCOUNT_ENABLE, Operator, accounts::enable, "Let a disabled account in again"),
        route!(POST JOIN_CODES, Account, accounts::join_code, "A code with which one client may join"),
        route!(GET PROXY_ACCOUNTS, Account, proxies::list, "The account's logins of the hosted proxy"),
        route!(POST PROXY_ACCOUNTS, Account, proxies::create, "A new login; its secret is shown once"),
        route!(POST PROXY_ACCOUNT_DISABLE, Account, proxies::disable, "Refuse a login from now on"),
        route!(GET GRANTS, Account, grants::list, "The account's grants and what is left of them"),
        route!(POST GRANTS, Operator, grants::create, "A new grant"),
        route!(GET ABUSE, Operator, proxies::abuse, "Who used an exit at a time"),
    ]
}

//! A request and an answer of each route: real values of the types that are read and written.

use axum::http::Method;
use serde_json::{Value, json};
use trust::api::{
    AbuseAnswer, AbuseFinding, AccountAnswer, AccountRequest, Candidate, CandidatesAnswer, ClientSummary,
    ClientsAnswer, CloseAnswer, ContractAnswer, ContractRequest, Exit, ExitsRequest, GrantRequest,
    GrantSummary, GrantsAnswer, JoinCodeAnswer, JoinCodeRequest, Limits, Location, LocationsAnswer,
    PoolsAnswer, ProviderFigures, ProxyAccountAnswer, ProxyAccountRequest, ProxyAccountSummary,
    ProxyAccountsAnswer, ProxyLogin, RegisterAnswer, RegisterRequest, RevokeAnswer, SessionAnswer,
    SignInRequest, StatusAnswer, TokenAnswer, TokenRequest, TrustAnswer, path,
};
use uuid::Uuid;

/// 2027-01-15, 08:00.
const TIME_MS: u64 = 1_800_000_000_000;
const ID: Uuid = Uuid::from_u128(0x0199_b8a0_0000_7000_8000_0000_0000_0001);

/// What one route takes and gives.
#[derive(Default)]
pub(super) struct Examples {
    pub(super) request: Option<Value>,
    pub(super) answer: Value,
    /// Names, types, and whether they are needed.
    pub(super) query: Vec<(&'static str, &'static str, bool)>,
    /// The answer is no JSON.
    pub(super) bytes: bool,
    /// The answer has a tag, with which it can be asked whether it has changed.
    pub(super) tagged: bool,
}

pub(super) fn of(method: &Method, route: &str) -> Examples {
    let get = method == Method::GET;
    match route {
        path::STATUS => answer(json!(StatusAnswer { status: "ok".into(), providers: Some(figures()) })),
        path::READY => answer(json!({ "status": "ok" })),
        path::TRUST => answer(json!(documents())),
        path::CLIENTS if get => answer(json!(ClientsAnswer { clients: vec![client()] })),
        path::CLIENTS => both(
            json!(registration()),
            json!(RegisterAnswer { client: ID, token: token(), trust: documents() }),
        ),
        path::CLIENT_REVOKE => answer(json!(RevokeAnswer { listed: true })),
        path::TOKEN => both(json!(TokenRequest { epoch: TIME_MS }), json!(token())),
        path::CONTRACTS => both(json!(contract()), json!(admitted())),
        path::CONTRACT_CLOSE => answer(json!(CloseAnswer { settled_by_ms: TIME_MS })),
        path::CANDIDATES => Examples {
            answer: json!(CandidatesAnswer {
                candidates: vec![candidate()],
                now_ms: TIME_MS,
                connected: 1,
                registered: 2,
                stale: false,
                as_of_ms: Some(TIME_MS),
            }),
            query: vec![
                ("country", "string", false),
                ("provider", "string", false),
                ("limit", "integer", false),
            ],
            ..Examples::default()
        },
        path::LOCATIONS => {
            let location = Location { country: Some("DE".into()), connected: 1, verified: Some(1) };
            answer(json!(LocationsAnswer {
                locations: vec![location],
                stale: false,
                as_of_ms: Some(TIME_MS)
            }))
        }
        path::POOLS => Examples { tagged: true, ..answer(json!(pools())) },
        path::POOL => Examples { bytes: true, tagged: true, ..Examples::default() },
        path::PROXY_LOGIN => answer(json!(login())),
        path::EXITS => both(json!(ExitsRequest { exits: vec![exit()] }), json!({})),
        path::SESSION if method == Method::POST => both(
            json!(SignInRequest { account: "operator".into(), password: "…".into() }),
            json!(SessionAnswer { bearer: "…".into(), expires_at_ms: TIME_MS }),
        ),
        path::ACCOUNTS if get => answer(json!(account())),
        path::ACCOUNTS => {
            both(json!(AccountRequest { name: "customer".into(), password: "…".into() }), json!(account()))
        }
        path::JOIN_CODES => both(
            json!(JoinCodeRequest { role: 1 }),
            json!(JoinCodeAnswer { code: "…".into(), expires_at_ms: TIME_MS }),
        ),
        path::PROXY_ACCOUNTS if get => {
            answer(json!(ProxyAccountsAnswer { proxy_accounts: vec![proxy_account()] }))
        }
        path::PROXY_ACCOUNTS => both(
            json!(ProxyAccountRequest {
                name: "shop".into(),
                limits: limits(),
                selection: "country-de".into()
            }),
            json!(ProxyAccountAnswer { name: "shop".into(), secret: "…".into() }),
        ),
        path::GRANTS if get => answer(json!(GrantsAnswer { grants: vec![grant()], overdrawn_bytes: 0 })),
        path::GRANTS => {
            both(json!(new_grant()), json!(GrantsAnswer { grants: vec![grant()], overdrawn_bytes: 0 }))
        }
        path::ABUSE => Examples {
            answer: json!(AbuseAnswer { findings: vec![finding()], kept_since_ms: TIME_MS }),
            query: vec![
                ("provider", "string", true),
                ("time_ms", "integer", true),
                ("port", "integer", false),
            ],
            ..Examples::default()
        },
        path::CLIENT_DISABLE
        | path::CLIENT_ENABLE
        | path::ACCOUNT_DISABLE
        | path::ACCOUNT_ENABLE
        | path::PROXY_ACCOUNT_DISABLE
        | path::SESSION => answer(json!({})),
        _ => Examples::default(),
    }
}

fn answer(answer: Value) -> Examples {
    Examples { answer, ..Examples::default() }
}

fn both(request: Value, answer: Value) -> Examples {
    Examples { request: Some(request), answer, ..Examples::default() }
}

fn documents() -> TrustAnswer {
    TrustAnswer { key_ring: "…".into(), revocations: "…".into() }
}

fn token() -> TokenAnswer {
    TokenAnswer {
        token: "…".into(),
        expires_at_ms: TIME_MS,
        refresh_after_ms: TIME_MS,
        relays: vec!["relay.example.org:443".into()],
        now_ms: TIME_MS,
    }
}

fn registration() -> RegisterRequest {
    RegisterRequest {
        request: ID,
        role: 1,
        identity: "…".into(),
        code: "…".into(),
        proof: "…".into(),
        label: "attic".into(),
        software: "holdfast 0.1.0".into(),
        country: Some("DE".into()),
    }
}

fn client() -> ClientSummary {
    ClientSummary {
        client: ID,
        role: 1,
        label: "attic".into(),
        software: "holdfast 0.1.0".into(),
        country: Some("DE".into()),
        thumbprint: "…".into(),
        created_at_ms: TIME_MS,
        disabled_at_ms: Some(TIME_MS),
        connected: true,
    }
}

fn contract() -> ContractRequest {
    ContractRequest { request: ID, proxy_account: Some("shop".into()), previous: Some(ID) }
}

fn admitted() -> ContractAnswer {
    ContractAnswer {
        contract: ID,
        signed: "…".into(),
        bytes: ledger::FIRST_BLOCK_BYTES,
        expires_at_ms: TIME_MS,
    }
}

fn candidate() -> Candidate {
    Candidate {
        provider: ID,
        epoch: TIME_MS,
        identity: "…".into(),
        relay: "relay.example.org:443".into(),
        country: Some("DE".into()),
        connected_at_ms: TIME_MS,
        seen_at_ms: TIME_MS,
    }
}

fn figures() -> ProviderFigures {
    ProviderFigures {
        listed: 2,
        verified: 1,
        registered: 3,
        as_of_ms: TIME_MS,
        stale: true,
        cause: Some("…".into()),
    }
}

fn pools() -> PoolsAnswer {
    PoolsAnswer {
        manifest: "…".into(),
        confirmed_at_ms: TIME_MS,
        stale: true,
        cause: Some("…".into()),
        now_ms: TIME_MS,
    }
}

fn limits() -> Limits {
    Limits { streams: 100, streams_per_second: 50, bytes_per_second: 10_000_000, contracts: 4 }
}

fn login() -> ProxyLogin {
    ProxyLogin {
        name: "shop".into(),
        account: ID,
        secret_sha256: "…".into(),
        limits: limits(),
        selection: "country-de".into(),
        disabled: false,
    }
}

fn proxy_account() -> ProxyAccountSummary {
    ProxyAccountSummary {
        name: "shop".into(),
        limits: limits(),
        selection: "country-de".into(),
        disabled_at_ms: Some(TIME_MS),
    }
}

fn exit() -> Exit {
    Exit {
        exit: ID,
        proxy_account: "shop".into(),
        provider: ID,
        port: 443,
        opened_at_ms: TIME_MS,
        closed_at_ms: TIME_MS,
    }
}

fn account() -> AccountAnswer {
    AccountAnswer { account: ID, name: "customer".into(), operator: false }
}

fn new_grant() -> GrantRequest {
    GrantRequest { request: ID, account: ID, bytes: 1 << 40, starts_at_ms: TIME_MS, expires_at_ms: TIME_MS }
}

fn grant() -> GrantSummary {
    GrantSummary {
        grant: ID,
        bytes: 1 << 40,
        spent_bytes: 0,
        held_bytes: ledger::FIRST_BLOCK_BYTES,
        starts_at_ms: TIME_MS,
        expires_at_ms: TIME_MS,
    }
}

fn finding() -> AbuseFinding {
    AbuseFinding {
        account: ID,
        account_name: "customer".into(),
        proxy_account: "shop".into(),
        opened_at_ms: TIME_MS,
        closed_at_ms: TIME_MS,
    }
}

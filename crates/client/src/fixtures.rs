//! A small api for tests: TLS under a root of its own, answers by a function, and a record of what was asked.

use crate::api::Api;
use bytes::Bytes;
use clock::unix_ms;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use tls::{TlsSession, TlsStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use trust::{CertificateRole, JoinLink, NetworkId, RootKey};

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(body: &str) -> Self {
        Self { status: 200, body: body.to_owned() }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) body: Vec<u8>,
    headers: hyper::HeaderMap,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }
}

type Answers = dyn Fn(&Seen) -> Answer + Send + Sync;

pub(crate) struct Server {
    pub(crate) root: RootKey,
    port: u16,
    record: Arc<Mutex<(Vec<Seen>, usize)>>,
    drops: watch::Sender<()>,
    task: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(answers: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Self {
        Self::start_under(RootKey::generate().unwrap(), answers).await
    }

    pub(crate) async fn start_under(
        root: RootKey,
        answers: impl Fn(&Seen) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let certificate = root.issue(CertificateRole::Api, &["127.0.0.1".to_owned()], unix_ms()).unwrap();
        let tls = trust::server_config(&certificate, &[b"http/1.1"]).unwrap();
        let (drops, dropped) = watch::channel(());
        let record = Arc::new(Mutex::new((Vec::new(), 0)));
        let (answers, kept): (Arc<Answers>, _) = (Arc::new(answers), Arc::clone(&record));
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let session = TlsSession::accept(Arc::clone(&tls), true).unwrap();
                tokio::spawn(serve(
                    stream,
                    session,
                    Arc::clone(&answers),
                    Arc::clone(&kept),
                    dropped.clone(),
                ));
            }
        });
        Self { root, port, record, drops, task }
    }

    pub(crate) fn network(&self) -> NetworkId {
        self.root.network()
    }

    pub(crate) fn link(&self) -> JoinLink {
        JoinLink { host: "127.0.0.1".to_owned(), port: self.port, network: self.network() }
    }

    pub(crate) fn api(&self) -> Api {
        Api::new(&self.link()).unwrap()
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.record.lock().unwrap().0.clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.record.lock().unwrap().1
    }

    pub(crate) fn drop_connections(&self) {
        self.drops.send_replace(());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    stream: TcpStream,
    session: TlsSession,
    answers: Arc<Answers>,
    record: Arc<Mutex<(Vec<Seen>, usize)>>,
    mut dropped: watch::Receiver<()>,
) {
    let mut stream = TlsStream::new(stream, session);
    if stream.handshake().await.is_err() {
        return;
    }
    record.lock().unwrap().1 += 1;
    dropped.mark_unchanged();
    let service = service_fn(|request: hyper::Request<Incoming>| {
        let (answers, record) = (Arc::clone(&answers), Arc::clone(&record));
        async move {
            let (head, body) = request.into_parts();
            let seen = Seen {
                method: head.method.to_string(),
                path: head.uri.to_string(),
                body: body.collect().await.unwrap().to_bytes().to_vec(),
                headers: head.headers,
            };
            let answer = answers(&seen);
            record.lock().unwrap().0.push(seen);
            let answer =
                hyper::Response::builder().status(answer.status).body(Full::new(Bytes::from(answer.body)));
            Ok::<_, Infallible>(answer.unwrap())
        }
    });
    let connection =
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        _ = connection => {}
        _ = dropped.changed() => {}
    }
}

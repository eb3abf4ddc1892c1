//! Servers of the outside, on loopback: what they were asked can be read back.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// The authority of every server here.
pub(crate) fn authority() -> &'static CertifiedIssuer<'static, KeyPair> {
    static AUTHORITY: OnceLock<CertifiedIssuer<'static, KeyPair>> = OnceLock::new();
    AUTHORITY.get_or_init(|| {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, "authority of the test");
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    })
}

/// A request as a server saw it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) version: hyper::Version,
    pub(crate) headers: hyper::HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

pub(crate) struct Server {
    pub(crate) port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<Mutex<usize>>,
    _runtime: tokio::runtime::Runtime,
}

pub(crate) type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

impl Server {
    /// HTTPS for any name below `example.org`, in HTTP/1.1 and HTTP/2.
    pub(crate) fn https() -> Self {
        Self::start(true, &[b"h2", b"http/1.1"])
    }

    /// HTTPS that speaks HTTP/1.1 alone.
    pub(crate) fn https_1() -> Self {
        Self::start(true, &[b"http/1.1"])
    }

    /// HTTP without TLS.
    pub(crate) fn http() -> Self {
        Self::start(false, &[])
    }

    /// HTTPS with answers of a test's own.
    pub(crate) fn answering<F, T>(respond: F) -> Self
    where
        F: Fn(Seen) -> T + Clone + Send + Sync + 'static,
        T: Future<Output = Answer> + Send + 'static,
    {
        let acceptor = TlsAcceptor::from(Arc::new(server_config(&[b"http/1.1"])));
        Self::listening(move |stream, seen| {
            let (acceptor, respond) = (acceptor.clone(), respond.clone());
            async move {
                let Ok(stream) = acceptor.accept(stream).await else {
                    return;
                };
                let service = service_fn(move |request: Request<Incoming>| {
                    let (respond, seen) = (respond.clone(), Arc::clone(&seen));
                    async move {
                        let one = read(request).await?;
                        seen.lock().unwrap().push(one.clone());
                        Ok::<_, hyper::Error>(respond(one).await)
                    }
                });
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            }
        })
    }

    /// Sends back what it gets.
    pub(crate) fn echo() -> Self {
        Self::listening(|stream, _| async move {
            let (mut from, mut to) = stream.into_split();
            let _ = tokio::io::copy(&mut from, &mut to).await;
        })
    }

    /// A proxy that grants every `CONNECT` to loopback and notes it as a request.
    pub(crate) fn proxy() -> Self {
        Self::listening(|mut stream, seen| async move {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let text = String::from_utf8(head).unwrap();
            let target = text.split(' ').nth(1).unwrap().to_owned();
            let mut headers = hyper::HeaderMap::new();
            for line in text.lines().skip(1).filter(|line| !line.is_empty()) {
                let (name, value) = line.split_once(": ").unwrap();
                headers.insert(
                    name.parse::<hyper::header::HeaderName>().unwrap(),
                    value.parse().unwrap(),
                );
            }
            let port: u16 = target.rsplit(':').next().unwrap().parse().unwrap();
            seen.lock().unwrap().push(Seen {
                method: text.split(' ').next().unwrap().to_owned(),
                target,
                version: hyper::Version::HTTP_11,
                headers,
                body: Vec::new(),
            });
            let mut server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            stream
                .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
                .await
                .unwrap();
            let _ = tokio::io::copy_bidirectional(&mut stream, &mut server).await;
        })
    }

    fn start(tls: bool, alpn: &[&[u8]]) -> Self {
        let acceptor = tls.then(|| TlsAcceptor::from(Arc::new(server_config(alpn))));
        Self::listening(move |stream, seen| {
            let acceptor = acceptor.clone();
            async move {
                match acceptor {
                    None => serve_1(stream, seen).await,
                    Some(acceptor) => {
                        let Ok(stream) = acceptor.accept(stream).await else {
                            return;
                        };
                        if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                            let service =
                                service_fn(move |request| answer(request, Arc::clone(&seen)));
                            let _ = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                                .serve_connection(TokioIo::new(stream), service)
                                .await;
                        } else {
                            serve_1(stream, seen).await;
                        }
                    }
                }
            }
        })
    }

    fn listening<F, T>(serve: F) -> Self
    where
        F: Fn(TcpStream, Arc<Mutex<Vec<Seen>>>) -> T + Send + Sync + 'static,
        T: Future<Output = ()> + Send + 'static,
    {
        crate::sandbox::many_descriptors();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime
            .block_on(TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))))
            .unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(Mutex::new(0));
        let (told, counted) = (Arc::clone(&seen), Arc::clone(&connections));
        runtime.spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                *counted.lock().unwrap() += 1;
                tokio::spawn(serve(stream, Arc::clone(&told)));
            }
        });
        Self {
            port,
            seen,
            connections,
            _runtime: runtime,
        }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// How many connections arrived.
    pub(crate) fn connections(&self) -> usize {
        *self.connections.lock().unwrap()
    }
}

fn server_config(alpn: &[&[u8]]) -> ServerConfig {
    let key = KeyPair::generate().unwrap();
    let names = vec!["example.org".to_owned(), "*.example.org".to_owned()];
    let leaf = CertificateParams::new(names)
        .unwrap()
        .signed_by(&key, authority())
        .unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|one| one.to_vec()).collect();
    config
}

async fn serve_1(
    stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    seen: Arc<Mutex<Vec<Seen>>>,
) {
    let service = service_fn(move |request| answer(request, Arc::clone(&seen)));
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
}

async fn answer(
    mut request: Request<Incoming>,
    seen: Arc<Mutex<Vec<Seen>>>,
) -> Result<Answer, hyper::Error> {
    let path = request.uri().path().to_owned();
    if path == "/socket" {
        return Ok(websocket(&mut request, &seen));
    }
    let one = read(request).await?;
    let reflected = one.header("authorization").unwrap_or_default().to_owned();
    seen.lock().unwrap().push(one);
    let built = Response::builder().header("alt-svc", "h3=\":443\"");
    Ok(match path.split('/').nth(1).unwrap() {
        // What was said, in pieces that a secret does not fit in.
        "reflect" => {
            let text = format!("you said {reflected}, did you not?");
            let pieces: Vec<Bytes> = text
                .as_bytes()
                .chunks(3)
                .map(Bytes::copy_from_slice)
                .collect();
            let frames = stream::iter(pieces.into_iter().map(|piece| Ok(Frame::data(piece))));
            built
                .header("x-reflected", reflected)
                .body(StreamBody::new(frames).boxed_unsync())
                .unwrap()
        }
        "compressed" => built
            .header("content-encoding", "gzip")
            .body(full(reflected))
            .unwrap(),
        "bytes" => {
            let count = path.split('/').nth(2).unwrap().parse().unwrap();
            built.body(full(vec![b'x'; count])).unwrap()
        }
        "elsewhere" => built
            .status(302)
            .header("location", "https://denied.example.org/")
            .body(full(""))
            .unwrap(),
        _ => built.body(full("hello from outside\n")).unwrap(),
    })
}

async fn read(request: Request<Incoming>) -> Result<Seen, hyper::Error> {
    let (parts, body) = request.into_parts();
    Ok(Seen {
        method: parts.method.to_string(),
        target: parts.uri.to_string(),
        version: parts.version,
        headers: parts.headers,
        body: body.collect().await?.to_bytes().to_vec(),
    })
}

pub(crate) fn full(bytes: impl Into<Bytes>) -> UnsyncBoxBody<Bytes, Infallible> {
    Full::new(bytes.into()).boxed_unsync()
}

/// Agrees to a WebSocket without looking, and sends back what it gets.
fn websocket(request: &mut Request<Incoming>, seen: &Arc<Mutex<Vec<Seen>>>) -> Answer {
    let upgrade = hyper::upgrade::on(&mut *request);
    seen.lock().unwrap().push(Seen {
        method: "GET".to_owned(),
        target: request.uri().to_string(),
        version: request.version(),
        headers: request.headers().clone(),
        body: Vec::new(),
    });
    tokio::spawn(async move {
        let Ok(upgraded) = upgrade.await else { return };
        let (mut from, mut to) = tokio::io::split(TokioIo::new(upgraded));
        let _ = tokio::io::copy(&mut from, &mut to).await;
    });
    Response::builder()
        .status(101)
        .header("connection", "upgrade")
        .header("upgrade", "websocket")
        .body(full(""))
        .unwrap()
}

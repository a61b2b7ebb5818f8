//! The outbound client against servers that do as they are told.
//!
//! All of 127.0.0.0/8 is this host. `127.0.0.2` plays the public Internet, by way of `egress.allow_networks`;
//! `127.0.0.1` is what must not be reached.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, StatusCode, Uri};
use trifid_base_runtime::units::{Size, Span};
use trifid_base_web::HealthSource as _;
use trifid_base_web::egress::{
    AddressClass, Client, FetchError, FinalUri, Options, Refusal, Request, Resolve, Resolving,
};

/// A request as a server saw it: the number of its connection, its head, its body.
#[derive(Debug)]
struct Seen {
    connection: usize,
    head: String,
    body: Vec<u8>,
}

/// A server whose script answers the request of a connection and a number, or closes on `None`.
struct Server {
    address: SocketAddr,
    seen: Receiver<Seen>,
}

type Script = dyn Fn(usize, usize, &str) -> Option<String> + Send + Sync;

impl Server {
    fn new(
        host: &str,
        script: impl Fn(usize, usize, &str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((host, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, seen) = channel();
        let script: Arc<Script> = Arc::new(script);
        std::thread::spawn(move || {
            for (connection, stream) in listener.incoming().enumerate() {
                let (script, sender) = (Arc::clone(&script), sender.clone());
                std::thread::spawn(move || {
                    converse(stream.unwrap(), |number, head, body| {
                        let answer = script(connection, number, &head);
                        let _ = sender.send(Seen { connection, head, body });
                        answer
                    });
                });
            }
        });
        Self { address, seen }
    }

    fn url(&self, path: &str) -> Uri {
        format!("http://{}{path}", self.address).parse().unwrap()
    }

    /// The next request that the server saw.
    fn seen(&self) -> Seen {
        self.seen.recv_timeout(super::support::PATIENCE).expect("a request should come")
    }

    fn was_left_alone(&self) -> bool {
        self.seen.try_recv().is_err()
    }
}

fn converse(stream: TcpStream, mut answer: impl FnMut(usize, String, Vec<u8>) -> Option<String>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut writer = stream;
    for number in 0.. {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
        let mut body = vec![0; length.parse().unwrap()];
        reader.read_exact(&mut body).unwrap();
        let Some(answer) = answer(number, head, body) else { return };
        let _ = writer.write_all(answer.as_bytes());
    }
}

fn ok(body: &str) -> Option<String> {
    Some(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
}

fn redirect(status: u16, location: &str) -> Option<String> {
    Some(format!("HTTP/1.1 {status} Moved\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n"))
}

/// The public Internet of these tests.
const PUBLIC: &str = "127.0.0.2";

fn options() -> Options {
    Options { allow_networks: vec![PUBLIC.to_owned()], ..Options::default() }
}

fn client() -> Client {
    Client::new(&options()).unwrap()
}

fn client_with(change: impl FnOnce(&mut Options)) -> Client {
    let mut options = options();
    change(&mut options);
    Client::new(&options).unwrap()
}

async fn get(client: &Client, url: &str) -> Result<String, FetchError> {
    let response = client.fetch(Request::get(url.parse().unwrap())).await?;
    Ok(String::from_utf8(response.into_body().to_vec()).unwrap())
}

/// A resolver with a table, which counts how often it is asked.
#[derive(Default)]
struct Table {
    answers: Mutex<Vec<Vec<SocketAddr>>>,
    asked: AtomicUsize,
}

impl Resolve for Table {
    fn resolve<'a>(&'a self, _: &'a str, port: u16) -> Resolving<'a> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mut answers = self.answers.lock().unwrap();
        let mut answer = if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() };
        answer.iter_mut().for_each(|address| address.set_port(port));
        Box::pin(async move { Ok(answer) })
    }
}

fn table(answers: &[&[&str]]) -> Arc<Table> {
    let address = |text: &&str| SocketAddr::new(text.parse().unwrap(), 0);
    let answers = answers.iter().map(|answer| answer.iter().map(address).collect()).collect();
    Arc::new(Table { answers: Mutex::new(answers), asked: AtomicUsize::new(0) })
}

#[tokio::test]
async fn addresses_that_are_not_public_are_refused_in_every_disguise() {
    let server = Server::new("127.0.0.1", |_, _, _| ok("secret"));
    let port = server.address.port();
    let client = Client::new(&Options::default()).unwrap();
    for (host, class) in [
        ("127.0.0.1", AddressClass::Loopback),
        ("localhost", AddressClass::Loopback),
        ("LOCALHOST", AddressClass::Loopback),
        ("2130706433", AddressClass::Loopback),
        ("0x7f.1", AddressClass::Loopback),
        ("0177.0.0.1", AddressClass::Loopback),
        ("[::1]", AddressClass::Loopback),
        ("[::ffff:127.0.0.1]", AddressClass::Loopback),
        ("[64:ff9b::7f00:1]", AddressClass::Loopback),
        ("0.0.0.0", AddressClass::Unspecified),
        ("[::]", AddressClass::Unspecified),
        ("10.0.0.1", AddressClass::Private),
        ("[fd00::1]", AddressClass::Private),
        ("169.254.169.254", AddressClass::LinkLocal),
        ("100.64.0.1", AddressClass::CarrierGrade),
        ("224.0.0.1", AddressClass::Multicast),
    ] {
        match get(&client, &format!("http://{host}:{port}/")).await {
            Err(FetchError::Refused { refusal: Refusal::Address { class: found, .. }, .. }) => {
                assert_eq!(found, class, "{host}");
            }
            other => panic!("{host}: {other:?}"),
        }
    }
    assert!(server.was_left_alone());
    let allowed = client_with(|options| options.allow_private = true);
    assert_eq!(get(&allowed, &format!("http://localhost:{port}/")).await.unwrap(), "secret");
}

#[tokio::test]
async fn urls_that_may_not_go_out_are_refused_by_their_form() {
    let check = async |client: &Client, url: &str, expected: Refusal| match get(client, url).await {
        Err(FetchError::Refused { refusal, .. }) => assert_eq!(refusal, expected, "{url}"),
        other => panic!("{url}: {other:?}"),
    };
    let client = client();
    check(&client, "ftp://example.org/", Refusal::Scheme("ftp".into())).await;
    check(&client, "file://example.org/etc/passwd", Refusal::Scheme("file".into())).await;
    check(&client, "/relative", Refusal::NoHost).await;
    check(&client, "http://user:secret@example.org/", Refusal::Credentials).await;
    let strict = client_with(|options| options.schemes = vec!["https".into()]);
    check(&strict, "http://127.0.0.2/", Refusal::Scheme("http".into())).await;
}

#[tokio::test]
async fn a_name_that_means_a_private_address_is_refused() {
    for addresses in [&["10.0.0.1"][..], &["::1", "fe80::1"]] {
        let client = Client::with_resolver(&options(), table(&[addresses])).unwrap();
        let result = get(&client, "http://intranet.example/").await;
        assert!(matches!(result, Err(FetchError::Refused { .. })), "{result:?}");
    }
}

#[tokio::test]
async fn a_name_is_resolved_once_and_only_its_public_addresses_are_used() {
    let public = Server::new(PUBLIC, |_, _, _| ok("public"));
    let port = public.address.port();
    // The second answer would lead inside. It is never asked for.
    let resolver = table(&[&["127.0.0.1", "10.0.0.1", PUBLIC], &["127.0.0.1"]]);
    let client = Client::with_resolver(&options(), Arc::clone(&resolver) as _).unwrap();
    assert_eq!(get(&client, &format!("http://mixed.example:{port}/")).await.unwrap(), "public");
    assert_eq!(resolver.asked.load(Ordering::Relaxed), 1);
    assert!(public.seen().head.contains(&format!("host: mixed.example:{port}\r\n")));
    // The kept connection leads where it led; a new one would be refused.
    assert_eq!(get(&client, &format!("http://MIXED.example:{port}/")).await.unwrap(), "public");
    assert_eq!(resolver.asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_redirect_passes_the_guard_again() {
    let inside = Server::new("127.0.0.1", |_, _, _| ok("secret"));
    let target = inside.url("/metadata").to_string();
    let public = Server::new(PUBLIC, move |_, _, _| redirect(302, &target));
    let result = get(&client(), &public.url("/").to_string()).await;
    assert!(
        matches!(result, Err(FetchError::Refused { refusal: Refusal::Address { .. }, .. })),
        "{result:?}"
    );
    let disguised = Server::new(PUBLIC, |_, _, _| redirect(301, "//[::ffff:127.0.0.1]/"));
    let result = get(&client(), &disguised.url("/").to_string()).await;
    assert!(
        matches!(result, Err(FetchError::Refused { refusal: Refusal::Address { .. }, .. })),
        "{result:?}"
    );
    let elsewhere = Server::new(PUBLIC, |_, _, _| redirect(302, "file:///etc/passwd"));
    let result = get(&client(), &elsewhere.url("/").to_string()).await;
    assert!(matches!(result, Err(FetchError::BadRedirect { .. })), "{result:?}");
    assert!(inside.was_left_alone());
}

#[tokio::test]
async fn redirects_are_followed_a_bounded_number_of_times() {
    let server = Server::new(PUBLIC, |_, _, head| match head.split(' ').nth(1).unwrap() {
        "/a/start" => redirect(301, "middle?x=1"),
        "/a/middle?x=1" => redirect(307, "/end"),
        "/end" => ok("end"),
        _ => redirect(302, "/loop"),
    });
    let response = client().fetch(Request::get(server.url("/a/start"))).await.unwrap();
    assert_eq!(response.body(), "end");
    assert_eq!(response.extensions().get(), Some(&FinalUri(server.url("/end"))));
    let result = client().fetch(Request::get(server.url("/loop"))).await;
    assert!(matches!(result, Err(FetchError::TooManyRedirects { limit: 3 })), "{result:?}");
    let bare = Request { redirects: Some(0), ..Request::get(server.url("/loop")) };
    assert_eq!(client().fetch(bare).await.unwrap().status(), 302);
}

#[tokio::test]
async fn a_redirect_keeps_what_it_should_and_drops_credentials_elsewhere() {
    let other = Server::new(PUBLIC, |_, _, _| ok("there"));
    let (keep, see) = (other.url("/keep").to_string(), other.url("/see").to_string());
    let server = Server::new(PUBLIC, move |_, _, head| match head.split(' ').nth(1).unwrap() {
        "/308" => redirect(308, &keep),
        "/303" => redirect(303, &see),
        "/same" => redirect(307, "/end"),
        _ => ok("here"),
    });
    let post = |path: &str| {
        let mut request = Request::new(Method::POST, server.url(path));
        request.body = "body".into();
        request.headers.insert("authorization", "Bearer x".parse().unwrap());
        request.headers.insert("content-type", "text/plain".parse().unwrap());
        request
    };
    client().fetch(post("/308")).await.unwrap();
    let seen = other.seen();
    assert!(seen.head.starts_with("POST /keep ") && seen.body == b"body", "{seen:?}");
    assert!(!seen.head.contains("authorization"), "{seen:?}");
    client().fetch(post("/303")).await.unwrap();
    let seen = other.seen();
    assert!(
        seen.head.starts_with("GET /see ") && seen.body.is_empty() && !seen.head.contains("content-type"),
        "{seen:?}"
    );
    client().fetch(post("/same")).await.unwrap();
    let earlier: Vec<_> = (0..3).map(|_| server.seen()).collect();
    let last = server.seen();
    assert!(earlier.iter().all(|seen| seen.head.starts_with("POST /")), "{earlier:?}");
    assert!(last.head.starts_with("POST /end ") && last.head.contains("authorization: Bearer x"), "{last:?}");
}

#[tokio::test]
async fn answers_are_bounded_in_size() {
    let server = Server::new(PUBLIC, |_, _, head| match head.split(' ').nth(1).unwrap() {
        "/announced" => Some("HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n".into()),
        "/chunked" => {
            let chunk = format!("1f4\r\n{}\r\n", "x".repeat(500));
            Some(format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunk}{chunk}{chunk}"))
        }
        "/head" => Some(format!("HTTP/1.1 200 OK\r\nh: {}\r\n\r\n", "x".repeat(200_000))),
        _ => ok(&"x".repeat(1000)),
    });
    let client = client_with(|options| options.response_limit = Size(1000));
    for path in ["/announced", "/chunked"] {
        let result = client.fetch(Request::get(server.url(path))).await;
        assert!(matches!(result, Err(FetchError::TooLarge { limit_bytes: 1000 })), "{path}: {result:?}");
    }
    let result = client.fetch(Request::get(server.url("/head"))).await;
    assert!(matches!(result, Err(FetchError::Exchange { .. })), "{result:?}");
    assert_eq!(client.fetch(Request::get(server.url("/"))).await.unwrap().body().len(), 1000);
    let larger = Request { response_limit_bytes: Some(999), ..Request::get(server.url("/")) };
    assert!(matches!(client.fetch(larger).await, Err(FetchError::TooLarge { limit_bytes: 999 })));
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_given_up() {
    let server = Server::new(PUBLIC, |_, _, _| Some("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab".into()));
    let request = Request { timeout: Some(Duration::from_millis(50)), ..Request::get(server.url("/")) };
    assert!(matches!(client().fetch(request).await, Err(FetchError::Timeout { .. })));
    // Nobody has a listener at this port any more.
    let closed = TcpListener::bind((PUBLIC, 0)).unwrap().local_addr().unwrap();
    let result = get(&client(), &format!("http://{closed}/")).await;
    assert!(matches!(&result, Err(error @ FetchError::Connect { .. }) if error.is_transient()), "{result:?}");
}

#[tokio::test]
async fn connections_are_kept_and_reused() {
    let server = Server::new(PUBLIC, |_, _, _| ok("x"));
    let client = client();
    for _ in 0..5 {
        client.fetch(Request::get(server.url("/"))).await.unwrap();
        assert_eq!(server.seen().connection, 0);
    }
    let section = client.section();
    assert_eq!((&section["counters"]["connected"], &section["counters"]["reused"]), (&1.into(), &4.into()));
    let unkept = client_with(|options| options.idle_per_host = 0);
    for connection in 1..4 {
        unkept.fetch(Request::get(server.url("/"))).await.unwrap();
        assert_eq!(server.seen().connection, connection);
    }
}

#[tokio::test]
async fn a_server_that_closes_after_each_answer_is_no_trouble() {
    let server = Server::new(PUBLIC, |_, number, _| {
        (number == 0).then(|| "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok".to_owned())
    });
    let client = client();
    for _ in 0..5 {
        assert_eq!(get(&client, &server.url("/").to_string()).await.unwrap(), "ok");
    }
}

#[tokio::test]
async fn a_dead_connection_is_replaced_once_where_that_does_no_harm() {
    // Each connection answers once, then reads a second request and closes without a word.
    let server = Server::new(PUBLIC, |_, number, _| if number == 0 { ok("ok") } else { None });
    let repeated = |client: &Client| client.section()["counters"]["repeated"].as_u64();
    let get = || Request::get(server.url("/"));
    let post = |is_repeatable| Request {
        is_repeatable,
        body: "x".into(),
        ..Request::new(Method::POST, server.url("/"))
    };
    for (second, goes_well) in [(get(), true), (post(true), true), (post(false), false)] {
        let client = client();
        client.fetch(get()).await.unwrap();
        let result = client.fetch(second).await;
        assert_eq!(result.is_ok(), goes_well, "{result:?}");
        assert_eq!(repeated(&client), Some(u64::from(goes_well)));
    }
    // A fresh connection that dies is not tried again: nothing says that the next one would live.
    let dead = Server::new(PUBLIC, |_, _, _| None);
    assert!(matches!(client().fetch(Request::get(dead.url("/"))).await, Err(FetchError::Exchange { .. })));
    dead.seen();
    assert!(dead.was_left_alone());
}

#[tokio::test]
async fn a_body_is_sent_with_its_length() {
    let server = Server::new(PUBLIC, |_, _, _| ok("x"));
    let mut request = Request::new(Method::POST, server.url("/notify?x=1"));
    request.body = vec![b'x'; 100_000].into();
    request.headers.insert("content-length", "7".parse().unwrap());
    request.headers.insert("host", "elsewhere.example".parse().unwrap());
    client().fetch(request).await.unwrap();
    let seen = server.seen();
    assert!(seen.head.starts_with("POST /notify?x=1 HTTP/1.1\r\n"), "{}", seen.head);
    assert!(
        seen.head.contains("content-length: 100000\r\n") && !seen.head.contains("chunked"),
        "{}",
        seen.head
    );
    assert!(seen.head.contains(&format!("host: {}\r\n", server.address)), "{}", seen.head);
    assert!(!seen.head.contains("elsewhere"), "{}", seen.head);
    assert_eq!(seen.body.len(), 100_000);
}

#[tokio::test]
async fn success_wants_success() {
    let server = Server::new(PUBLIC, |_, _, _| Some("HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n".into()));
    let result = client().success(Request::get(server.url("/"))).await;
    assert!(matches!(result, Err(FetchError::Status(StatusCode::NOT_FOUND))), "{result:?}");
    assert_eq!(client().fetch(Request::get(server.url("/"))).await.unwrap().status(), 404);
}

#[tokio::test]
async fn fetches_at_a_time_are_bounded() {
    let (release, gate) = channel::<()>();
    let gate = Mutex::new(gate);
    let server = Server::new(PUBLIC, move |_, _, head| {
        if head.starts_with("GET /held") {
            gate.lock().unwrap().recv().unwrap();
        }
        ok("x")
    });
    let client = client_with(|options| options.concurrent = 1.try_into().unwrap());
    let held = tokio::spawn({
        let (client, request) = (client.clone(), Request::get(server.url("/held")));
        async move { client.fetch(request).await }
    });
    while client.section()["fetches_possible"] != 0 {
        tokio::task::yield_now().await;
    }
    let second = Request { timeout: Some(Duration::from_millis(50)), ..Request::get(server.url("/second")) };
    assert!(matches!(client.fetch(second).await, Err(FetchError::Timeout { .. })));
    release.send(()).unwrap();
    held.await.unwrap().unwrap();
    assert!(server.seen().head.starts_with("GET /held"));
    assert!(server.was_left_alone(), "the second was never sent");
    client.fetch(Request::get(server.url("/third"))).await.unwrap();
}

#[tokio::test]
async fn tls_wants_a_certificate_that_is_trusted() {
    let folder = tempfile::tempdir().unwrap();
    super::tls::certify(folder.path());
    let running = super::tls::start(folder.path());
    let url = format!("https://localhost:{}/door/echo", running.address.port());
    let client = |ca: bool| {
        let ca_file = ca.then(|| folder.path().join("cert.pem"));
        Client::new(&Options { allow_private: true, ca_file, ..Options::default() }).unwrap()
    };
    let result = get(&client(false), &url).await;
    assert!(matches!(result, Err(FetchError::Tls { .. })), "{result:?}");
    assert!(get(&client(true), &url).await.unwrap().starts_with("GET /door/echo"));
    let wrong_name = format!("https://127.0.0.1:{}/door/echo", running.address.port());
    let result = get(&client(true), &wrong_name).await;
    assert!(matches!(result, Err(FetchError::Tls { .. })), "{result:?}");
}

#[test]
fn options_that_cannot_be_are_refused() {
    let refused = |change: fn(&mut Options)| {
        let mut options = options();
        change(&mut options);
        Client::new(&options).is_err()
    };
    assert!(refused(|options| options.schemes = vec!["ftp".into()]));
    assert!(refused(|options| options.allow_networks = vec!["10.0.0.0/40".into()]));
    assert!(refused(|options| options.ca_file = Some("/nonexistent".into())));
    assert!(!refused(|options| options.timeout = Span(Duration::from_secs(1))));
}

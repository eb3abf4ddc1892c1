use super::*;
use proptest::prelude::*;

fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &vector16(content)].concat()
}

fn vector16(content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap().to_be_bytes();
    [&length[..], content].concat()
}

fn names(names: &[&str]) -> Vec<u8> {
    let list: Vec<u8> = names
        .iter()
        .flat_map(|name| [&[0][..], &vector16(name.as_bytes())].concat())
        .collect();
    extension(0, &vector16(&list))
}

fn hello_with(extensions: &[Vec<u8>]) -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.push(0);
    body.extend([0, 2, 0x13, 0x01, 1, 0]);
    body.extend(vector16(&extensions.concat()));
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[1], &length[1..], &body[..]].concat()
}

/// In one record of TLS.
fn record(content: &[u8]) -> Vec<u8> {
    [&[22, 3, 1][..], &vector16(content)].concat()
}

fn read(extensions: &[Vec<u8>]) -> FirstBytes {
    read_client_hello(&record(&hello_with(extensions)))
}

fn name_of(first: &FirstBytes) -> Option<String> {
    match first {
        FirstBytes::Hello(hello) => hello.server_name.as_ref().map(ToString::to_string),
        _ => None,
    }
}

#[test]
fn the_server_name_is_read_in_its_one_spelling() {
    assert_eq!(
        name_of(&read(&[names(&["PyPI.org"])])).as_deref(),
        Some("pypi.org")
    );
}

#[test]
fn a_hello_without_a_server_name_says_so() {
    assert_eq!(name_of(&read(&[])), None);
    assert!(matches!(read(&[]), FirstBytes::Hello(hello) if hello.server_name.is_none()));
}

#[test]
fn the_protocols_offered_are_read() {
    let offered = extension(16, &vector16(b"\x02h2\x08http/1.1"));
    let FirstBytes::Hello(hello) = read(&[names(&["a.org"]), offered]) else {
        panic!("no hello");
    };
    assert_eq!(hello.alpn, [b"h2".to_vec(), b"http/1.1".to_vec()]);
}

#[test]
fn a_hello_that_hides_another_says_so() {
    let hidden = extension(0xfe0d, &[0; 40]);
    assert!(
        matches!(read(&[names(&["a.org"]), hidden]), FirstBytes::Hello(hello) if hello.hides_another)
    );
}

#[test]
fn a_hello_in_many_records_is_put_together() {
    let message = hello_with(&[names(&["files.example.org"])]);
    let split: Vec<u8> = message.chunks(7).flat_map(record).collect();
    assert_eq!(
        name_of(&read_client_hello(&split)).as_deref(),
        Some("files.example.org")
    );
}

#[test]
fn every_prefix_of_a_hello_waits_for_more() {
    let whole = record(&hello_with(&[names(&["a.org"])]));
    for end in 0..whole.len() {
        assert_eq!(
            read_client_hello(&whole[..end]),
            FirstBytes::Incomplete,
            "{end}"
        );
    }
}

#[test]
fn what_two_readers_could_understand_differently_is_refused() {
    for (what, extensions) in [
        ("a name twice", vec![names(&["a.org"]), names(&["b.org"])]),
        ("two names", vec![names(&["a.org", "b.org"])]),
        ("an address", vec![names(&["127.0.0.1"])]),
        ("an empty name", vec![names(&[""])]),
        ("a dot at the end", vec![names(&["a.org."])]),
        ("a zero byte", vec![names(&["a.org\0.evil.com"])]),
        (
            "another kind of name",
            vec![extension(0, &vector16(&[1, 0, 1, b'a']))],
        ),
        ("a length that lies", vec![vec![0, 0, 0xff, 0xff]]),
    ] {
        assert!(matches!(read(&extensions), FirstBytes::Other(_)), "{what}");
    }
    let mut followed = hello_with(&[names(&["a.org"])]);
    followed.extend([1, 0, 0, 0]);
    assert!(matches!(
        read_client_hello(&record(&followed)),
        FirstBytes::Other(_)
    ));
}

#[test]
fn other_protocols_are_known_by_their_first_byte() {
    for bytes in [
        &b"G"[..],
        b"SSH-2.0-x",
        b"CONNECT a:443 HTTP/1.1\r\n",
        b"\x80\x2e\x01",
        b"\x15\x03\x01\x00\x02\x02\x28",
    ] {
        assert!(
            matches!(read_client_hello(bytes), FirstBytes::Other(_)),
            "{bytes:?}"
        );
    }
    let server = [&[2, 0, 0, 0][..]].concat();
    assert!(matches!(
        read_client_hello(&record(&server)),
        FirstBytes::Other(_)
    ));
}

#[test]
fn an_endless_hello_ends() {
    let huge = [1, 0xff, 0xff, 0xff];
    assert!(matches!(
        read_client_hello(&record(&huge)),
        FirstBytes::Other(_)
    ));
    let drip: Vec<u8> = record(&[0]).repeat(40_000);
    let drip = [record(&[1, 0, 0x70, 0]), drip].concat();
    assert!(matches!(read_client_hello(&drip), FirstBytes::Other(_)));
    let empty = [22, 3, 1, 0, 0];
    assert!(matches!(read_client_hello(&empty), FirstBytes::Other(_)));
}

proptest! {
    #[test]
    fn more_bytes_never_change_an_answer(at in 0..120_usize, byte: u8, more: Vec<u8>) {
        let mut whole = record(&hello_with(&[names(&["a.example.org"])]));
        let length = whole.len();
        whole[at % length] = byte;
        whole.extend(more);
        let mut decided = None;
        for end in 0..=whole.len() {
            let answer = read_client_hello(&whole[..end]);
            match &decided {
                Some(decided) => prop_assert_eq!(decided, &answer),
                None if answer == FirstBytes::Incomplete => {}
                None => decided = Some(answer),
            }
        }
    }

    #[test]
    fn hostile_bytes_never_panic(bytes: Vec<u8>) {
        let _ = read_client_hello(&bytes);
        let _ = read_client_hello(&record(&[&[1, 0, 0, 60][..], &bytes].concat()));
    }

    #[test]
    fn a_hello_with_one_byte_changed_never_panics(at in 0..120_usize, byte: u8) {
        let mut whole = record(&hello_with(&[names(&["a.example.org"]), extension(16, &vector16(b"\x02h2"))]));
        let at = at % whole.len();
        whole[at] = byte;
        let _ = read_client_hello(&whole);
    }
}

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use lula_protocol::receipt::WorkspaceMode;

fn text() -> impl Strategy<Value = Vec<u8>> {
    vec(1_u8.., 0..40)
}

fn terminal() -> impl Strategy<Value = PtySize> {
    (any::<u16>(), any::<u16>()).prop_map(|(rows, columns)| PtySize { rows, columns })
}

fn stream() -> impl Strategy<Value = OutputStream> {
    prop_oneof![Just(OutputStream::Stdout), Just(OutputStream::Stderr)]
}

fn request() -> impl Strategy<Value = ExecServerRequest> {
    prop_oneof![
        (
            vec(text(), 0..5),
            vec(text(), 0..5),
            text(),
            proptest::option::of(terminal()),
            any::<bool>(),
        )
            .prop_map(|(arguments, environment, directory, terminal, built_in)| {
                ExecServerRequest::Exec(ExecRequest {
                    arguments,
                    environment,
                    directory,
                    terminal,
                    built_in,
                })
            }),
        vec(any::<u8>(), 0..300).prop_map(ExecServerRequest::Stdin),
        Just(ExecServerRequest::StdinEnd),
        any::<u8>().prop_map(ExecServerRequest::Signal),
        terminal().prop_map(ExecServerRequest::Resize),
        (stream(), any::<u64>())
            .prop_map(|(stream, bytes)| ExecServerRequest::Credit(stream, bytes)),
        Just(ExecServerRequest::Kill),
        Just(ExecServerRequest::EndWithLast),
    ]
}

fn posture() -> impl Strategy<Value = KernelPosture> {
    (
        any::<bool>(),
        any::<u32>(),
        any::<u64>(),
        vec(("[a-z]{1,6}", any::<u64>()), 0..7),
        proptest::option::of(any::<u64>()),
    )
        .prop_map(
            |(no_new_privileges, seccomp_mode, capabilities, namespaces, file_size)| {
                KernelPosture {
                    no_new_privileges,
                    seccomp_mode,
                    seccomp_filters: 1,
                    capabilities,
                    bounding: 1,
                    namespaces,
                    open_files: 7,
                    file_size,
                    landlock_abi: 6,
                    landlock_rules: 9,
                    root_device: 3,
                    interfaces: vec!["lo".to_owned()],
                    workspace: no_new_privileges.then_some(WorkspaceMode::Overlay),
                    own_proc: true,
                }
            },
        )
}

fn event() -> impl Strategy<Value = ExecServerEvent> {
    prop_oneof![
        (posture(), vec(("[a-z ]{0,9}", "[a-z ]{0,9}"), 0..3)).prop_map(|(posture, missing)| {
            ExecServerEvent::Ready {
                posture,
                held_back: missing
                    .into_iter()
                    .map(|(asked, reason)| UnavailableProtection { asked, reason })
                    .collect(),
            }
        }),
        ("[a-z]{0,9}", any::<u32>()).prop_map(|(detail, errno)| ExecServerEvent::SetupFailed {
            stage: SetupStage::Landlock,
            detail,
            errno
        }),
        (any::<u32>(), posture())
            .prop_map(|(pid, posture)| ExecServerEvent::Started { pid, posture }),
        ("[a-z]{0,9}", any::<u32>())
            .prop_map(|(step, errno)| ExecServerEvent::NotStarted { step, errno }),
        (stream(), vec(any::<u8>(), 0..300))
            .prop_map(|(stream, bytes)| ExecServerEvent::Output(stream, bytes)),
        any::<u64>().prop_map(ExecServerEvent::StdinCredit),
        (any::<u8>(), any::<bool>(), any::<u64>()).prop_map(|(status, killed, number)| {
            ExecServerEvent::Exited {
                how: if killed {
                    ExitCause::Signal(status)
                } else {
                    ExitCause::Status(status)
                },
                cpu_us: number,
                peak_memory_bytes: number,
                killed,
                scratch_left: killed.then_some(number),
                unrouted: killed.then_some(number),
            }
        }),
    ]
}

proptest! {
    #[test]
    fn what_is_said_is_what_is_heard_however_the_bytes_are_cut(
        requests in vec((any::<u32>(), request()), 1..8),
        cut in 1_usize..64,
    ) {
        let mut bytes = Vec::new();
        for (command, request) in &requests {
            request.frame(*command).encode_into(&mut bytes).unwrap();
        }
        let mut decoder = ExecFrameDecoder::new();
        let mut heard = Vec::new();
        for piece in bytes.chunks(cut) {
            decoder.push(piece);
            while let Some(frame) = decoder.next_frame().unwrap() {
                heard.push((frame.command, ExecServerRequest::from_frame(&frame).unwrap()));
            }
        }
        prop_assert_eq!(heard, requests);
    }

    #[test]
    fn every_event_survives_the_wire(event in event(), command in any::<u32>()) {
        let frame = event.frame(command);
        let mut bytes = Vec::new();
        frame.encode_into(&mut bytes).unwrap();
        let mut decoder = ExecFrameDecoder::new();
        decoder.push(&bytes);
        let heard = decoder.next_frame().unwrap().unwrap();
        prop_assert_eq!(ExecServerEvent::from_frame(&heard).unwrap(), event);
    }

    #[test]
    fn hostile_bytes_are_refused_or_waited_for_but_never_believed(bytes in vec(any::<u8>(), 0..600)) {
        let mut decoder = ExecFrameDecoder::new();
        decoder.push(&bytes);
        while let Ok(Some(frame)) = decoder.next_frame() {
            // Whatever parses must mean the same when it is said again.
            if let Ok(request) = ExecServerRequest::from_frame(&frame) {
                prop_assert_eq!(ExecServerRequest::from_frame(&request.frame(frame.command)), Ok(request));
            }
            if let Ok(event) = ExecServerEvent::from_frame(&frame) {
                prop_assert_eq!(ExecServerEvent::from_frame(&event.frame(frame.command)), Ok(event));
            }
        }
    }

    #[test]
    fn one_changed_byte_never_makes_the_reader_panic(
        request in request(), position in any::<prop::sample::Index>(), value in any::<u8>(),
    ) {
        let mut bytes = Vec::new();
        request.frame(1).encode_into(&mut bytes).unwrap();
        let place = position.index(bytes.len());
        bytes[place] = value;
        let mut decoder = ExecFrameDecoder::new();
        decoder.push(&bytes);
        while let Ok(Some(frame)) = decoder.next_frame() {
            let _ = ExecServerRequest::from_frame(&frame);
        }
    }

    #[test]
    fn credit_is_never_overdrawn_nor_inflated(steps in vec((any::<bool>(), 0..2 * WINDOW), 0..50)) {
        let mut credit = StreamCredit::default();
        for (spend, amount) in steps {
            let before = credit.left();
            let allowed = if spend { credit.spend(amount) } else { credit.grant(amount) }.is_ok();
            let fits = if spend { amount <= before } else { before + amount <= WINDOW };
            prop_assert_eq!(allowed, fits);
            prop_assert!(credit.left() <= WINDOW);
            if !allowed {
                prop_assert_eq!(credit.left(), before);
            }
        }
    }
}

#[test]
fn a_frame_that_claims_gigabytes_is_refused_before_it_is_waited_for() {
    let mut decoder = ExecFrameDecoder::new();
    decoder.push(&u32::MAX.to_le_bytes());
    assert!(matches!(
        decoder.next_frame(),
        Err(ExecFrameError::TooLarge { .. })
    ));
}

#[test]
fn a_list_that_claims_more_items_than_bytes_reserves_nothing() {
    let frame = ExecFrame {
        kind: 1,
        command: 1,
        payload: u32::MAX.to_le_bytes().to_vec(),
    };
    assert!(matches!(
        ExecServerRequest::from_frame(&frame),
        Err(ExecFrameError::TooLarge { .. })
    ));
}

#[test]
fn leftover_bytes_are_refused() {
    let mut frame = ExecServerRequest::Kill.frame(1);
    frame.payload.push(0);
    assert_eq!(
        ExecServerRequest::from_frame(&frame),
        Err(ExecFrameError::Trailing { count: 1 })
    );
}

#[test]
fn an_argument_with_a_nul_is_refused() {
    let request = ExecServerRequest::Exec(ExecRequest {
        arguments: vec![b"a\0b".to_vec()],
        environment: vec![],
        directory: b"/".to_vec(),
        terminal: None,
        built_in: false,
    });
    assert_eq!(
        ExecServerRequest::from_frame(&request.frame(1)),
        Err(ExecFrameError::NotText { what: "argument" })
    );
}

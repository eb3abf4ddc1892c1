//! Questions and answers of DNS. Pure.

use std::net::Ipv4Addr;

use hickory_proto::op::{Edns, Message, MessageType, OpCode, ResponseCode};
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{DNSClass, RData, Record, RecordType};

use crate::DomainName;

/// Seconds for which an answer may be kept. The address stays the name's own for as long as it is used.
const TTL: u32 = 60;
/// What answers over UDP are bounded to; none is longer.
const UDP_PAYLOAD: u16 = 1232;

/// What a datagram asks.
#[derive(Debug)]
pub(crate) enum Asked {
    /// Nothing that deserves an answer.
    Noise,
    /// Something that is refused without looking at any name.
    Refused(Vec<u8>),
    /// One name, which rules decide about.
    Name(Question),
}

/// A question for one name.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    message: Message,
    /// The name; `None` for one that no rule could allow.
    pub(crate) name: Option<DomainName>,
    /// The name as it was asked for.
    pub(crate) text: String,
    /// Whether an IPv4 address is wanted. Other records of an allowed name are said not to exist.
    pub(crate) wants_address: bool,
}

/// What is answered to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NameAnswer {
    Address(Ipv4Addr),
    /// The name exists, records of this type do not.
    NoRecord,
    NoSuchName,
    Failure,
}

pub(crate) fn read(bytes: &[u8]) -> Asked {
    let Ok(message) = Message::from_vec(bytes) else {
        return Asked::Noise;
    };
    if message.metadata.message_type != MessageType::Query {
        return Asked::Noise;
    }
    let refused = |code| {
        let mut reply = Message::response(message.metadata.id, message.metadata.op_code);
        reply.metadata.response_code = code;
        reply.to_vec().map_or(Asked::Noise, Asked::Refused)
    };
    if message.metadata.op_code != OpCode::Query {
        return refused(ResponseCode::NotImp);
    }
    let [query] = message.queries.as_slice() else {
        return refused(ResponseCode::FormErr);
    };
    if query.query_class() != DNSClass::IN {
        return refused(ResponseCode::Refused);
    }
    let text: String = query.name().to_ascii().chars().take(256).collect();
    Asked::Name(Question {
        name: text.parse().ok(),
        text: text.trim_end_matches('.').to_ascii_lowercase(),
        wants_address: matches!(query.query_type(), RecordType::A | RecordType::ANY),
        message,
    })
}

impl Question {
    pub(crate) fn answered(&self, answer: NameAnswer) -> Vec<u8> {
        let asked = &self.message.metadata;
        let mut reply = Message::response(asked.id, asked.op_code);
        reply.metadata.recursion_desired = asked.recursion_desired;
        reply.metadata.recursion_available = true;
        reply.queries.clone_from(&self.message.queries);
        reply.metadata.response_code = match answer {
            NameAnswer::Address(_) | NameAnswer::NoRecord => ResponseCode::NoError,
            NameAnswer::NoSuchName => ResponseCode::NXDomain,
            NameAnswer::Failure => ResponseCode::ServFail,
        };
        if let (NameAnswer::Address(address), Some(query)) = (answer, self.message.queries.first())
        {
            let name = query.name().clone();
            reply
                .answers
                .push(Record::from_rdata(name, TTL, RData::A(A(address))));
        }
        if self.message.edns.is_some() {
            let mut edns = Edns::new();
            edns.set_max_payload(UDP_PAYLOAD);
            reply.edns = Some(edns);
        }
        reply.to_vec().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hickory_proto::op::Query;
    use hickory_proto::rr::Name;
    use proptest::prelude::*;

    fn question(name: &str, kind: RecordType) -> Vec<u8> {
        let mut message = Message::query();
        message.metadata.id = 7;
        message
            .queries
            .push(Query::query(Name::from_ascii(name).unwrap(), kind));
        message.to_vec().unwrap()
    }

    fn asked(bytes: &[u8]) -> Question {
        match read(bytes) {
            Asked::Name(question) => question,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_answer_repeats_the_question() {
        let question = asked(&question("PyPI.org.", RecordType::A));
        assert_eq!(question.name, Some("pypi.org".parse().unwrap()));
        let reply =
            Message::from_vec(&question.answered(NameAnswer::Address([198, 18, 0, 16].into())))
                .unwrap();
        assert_eq!(reply.metadata.id, 7);
        assert_eq!(reply.queries[0].name().to_ascii(), "PyPI.org.");
        assert_eq!(reply.answers.len(), 1);
        assert!(reply.answers[0].ttl <= 60);
    }

    #[test]
    fn records_other_than_addresses_are_told_apart() {
        for kind in [
            RecordType::AAAA,
            RecordType::TXT,
            RecordType::HTTPS,
            RecordType::MX,
            RecordType::NULL,
        ] {
            assert!(!asked(&question("a.org.", kind)).wants_address, "{kind}");
        }
        let reply = asked(&question("a.org.", RecordType::TXT)).answered(NameAnswer::NoRecord);
        let reply = Message::from_vec(&reply).unwrap();
        assert_eq!(
            (reply.metadata.response_code, reply.answers.len()),
            (ResponseCode::NoError, 0)
        );
    }

    #[test]
    fn a_name_that_is_none_can_never_be_allowed() {
        for odd in ["localhost.", "127.0.0.1.", "."] {
            assert_eq!(asked(&question(odd, RecordType::A)).name, None, "{odd}");
        }
    }

    #[test]
    fn answers_are_no_questions() {
        let mut message = Message::response(1, OpCode::Query);
        assert!(matches!(read(&message.to_vec().unwrap()), Asked::Noise));
        message.metadata.message_type = MessageType::Query;
        assert!(matches!(
            read(&message.to_vec().unwrap()),
            Asked::Refused(_)
        ));
        message.metadata.op_code = OpCode::Update;
        assert!(matches!(
            read(&message.to_vec().unwrap()),
            Asked::Refused(_)
        ));
    }

    proptest! {
        #[test]
        fn hostile_bytes_never_panic(bytes: Vec<u8>) {
            if let Asked::Name(question) = read(&bytes) {
                question.answered(NameAnswer::NoSuchName);
            }
        }
    }
}

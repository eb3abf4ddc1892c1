//! Writes canonical bytes straight from a value, without a tree in between.
//!
//! The fields of an object are written as they come and put in order when it ends.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde::Serialize;
use serde::ser::{self, Impossible};

use super::{CanonicalError, MAX_DEPTH, MAX_SAFE_INTEGER};

type Result<T = ()> = std::result::Result<T, CanonicalError>;

/// Writes one value, so many levels down.
pub(super) struct CanonicalWriter<'a> {
    pub(super) out: &'a mut Vec<u8>,
    pub(super) depth: usize,
}

impl<'a> CanonicalWriter<'a> {
    fn text(self, text: &str) -> Result {
        // serde_json escapes exactly what the RFC asks for, in the same form.
        Ok(serde_json::to_writer(self.out, text)?)
    }

    fn list(self) -> CanonicalListWriter<'a> {
        self.out.push(b'[');
        CanonicalListWriter {
            out: self.out,
            depth: self.depth,
            empty: true,
            around: false,
        }
    }

    fn object(self) -> CanonicalObjectWriter<'a> {
        self.out.push(b'{');
        CanonicalObjectWriter {
            start: self.out.len(),
            out: self.out,
            depth: self.depth,
            fields: Vec::new(),
            key: None,
            around: false,
        }
    }

    /// Begins `{"name":`, which the writer of the value has to end.
    fn named(self, name: &str) -> Result<Self> {
        self.out.push(b'{');
        serde_json::to_writer(&mut *self.out, name)?;
        self.out.push(b':');
        below(self.out, self.depth)
    }
}

/// A writer for what stands in something at this depth.
fn below(out: &mut Vec<u8>, depth: usize) -> Result<CanonicalWriter<'_>> {
    if depth >= MAX_DEPTH {
        return Err(CanonicalError::TooDeep);
    }
    Ok(CanonicalWriter {
        out,
        depth: depth + 1,
    })
}

fn too_large(number: &impl ToString) -> CanonicalError {
    CanonicalError::UnsafeInteger(number.to_string())
}

impl<'a> ser::Serializer for CanonicalWriter<'a> {
    type Ok = ();
    type Error = CanonicalError;
    type SerializeSeq = CanonicalListWriter<'a>;
    type SerializeTuple = CanonicalListWriter<'a>;
    type SerializeTupleStruct = CanonicalListWriter<'a>;
    type SerializeTupleVariant = CanonicalListWriter<'a>;
    type SerializeMap = CanonicalObjectWriter<'a>;
    type SerializeStruct = CanonicalObjectWriter<'a>;
    type SerializeStructVariant = CanonicalObjectWriter<'a>;

    fn serialize_bool(self, value: bool) -> Result {
        let text: &[u8] = if value { b"true" } else { b"false" };
        self.out.extend_from_slice(text);
        Ok(())
    }

    fn serialize_i8(self, value: i8) -> Result {
        self.serialize_i64(value.into())
    }

    fn serialize_i16(self, value: i16) -> Result {
        self.serialize_i64(value.into())
    }

    fn serialize_i32(self, value: i32) -> Result {
        self.serialize_i64(value.into())
    }

    fn serialize_i64(self, value: i64) -> Result {
        if value.unsigned_abs() > MAX_SAFE_INTEGER {
            return Err(too_large(&value));
        }
        Ok(serde_json::to_writer(self.out, &value)?)
    }

    fn serialize_i128(self, value: i128) -> Result {
        self.serialize_i64(i64::try_from(value).map_err(|_| too_large(&value))?)
    }

    fn serialize_u8(self, value: u8) -> Result {
        self.serialize_u64(value.into())
    }

    fn serialize_u16(self, value: u16) -> Result {
        self.serialize_u64(value.into())
    }

    fn serialize_u32(self, value: u32) -> Result {
        self.serialize_u64(value.into())
    }

    fn serialize_u64(self, value: u64) -> Result {
        if value > MAX_SAFE_INTEGER {
            return Err(too_large(&value));
        }
        Ok(serde_json::to_writer(self.out, &value)?)
    }

    fn serialize_u128(self, value: u128) -> Result {
        self.serialize_u64(u64::try_from(value).map_err(|_| too_large(&value))?)
    }

    fn serialize_f32(self, value: f32) -> Result {
        self.serialize_f64(value.into())
    }

    fn serialize_f64(self, value: f64) -> Result {
        if !value.is_finite() {
            return self.serialize_unit();
        }
        let mut buffer = ryu_js::Buffer::new();
        self.out.extend_from_slice(buffer.format(value).as_bytes());
        Ok(())
    }

    fn serialize_char(self, value: char) -> Result {
        self.text(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result {
        self.text(value)
    }

    fn serialize_bytes(self, value: &[u8]) -> Result {
        value.serialize(self)
    }

    fn serialize_none(self) -> Result {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result {
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result {
        self.text(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result {
        let inner = self.named(variant)?;
        let CanonicalWriter { out, depth } = inner;
        value.serialize(CanonicalWriter {
            out: &mut *out,
            depth,
        })?;
        out.push(b'}');
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<CanonicalListWriter<'a>> {
        Ok(self.list())
    }

    fn serialize_tuple(self, _: usize) -> Result<CanonicalListWriter<'a>> {
        Ok(self.list())
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<CanonicalListWriter<'a>> {
        Ok(self.list())
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<CanonicalListWriter<'a>> {
        let mut list = self.named(variant)?.list();
        list.around = true;
        Ok(list)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<CanonicalObjectWriter<'a>> {
        Ok(self.object())
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<CanonicalObjectWriter<'a>> {
        Ok(self.object())
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<CanonicalObjectWriter<'a>> {
        let mut object = self.named(variant)?.object();
        object.around = true;
        Ok(object)
    }
}

/// An array under way.
pub(super) struct CanonicalListWriter<'a> {
    out: &'a mut Vec<u8>,
    depth: usize,
    empty: bool,
    /// Whether an object with a single name stands around it.
    around: bool,
}

impl CanonicalListWriter<'_> {
    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result {
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
        value.serialize(below(self.out, self.depth)?)
    }

    fn finish(self) {
        self.out.push(b']');
        if self.around {
            self.out.push(b'}');
        }
    }
}

macro_rules! list {
    ($($kind:ident $item:ident),*) => { $(
        impl ser::$kind for CanonicalListWriter<'_> {
            type Ok = ();
            type Error = CanonicalError;
            fn $item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result {
                self.item(value)
            }
            fn end(self) -> Result {
                self.finish();
                Ok(())
            }
        }
    )* };
}
list!(
    SerializeSeq serialize_element, SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field, SerializeTupleVariant serialize_field
);

/// An object under way. Each field is written with a comma behind it.
pub(super) struct CanonicalObjectWriter<'a> {
    out: &'a mut Vec<u8>,
    depth: usize,
    /// Where its first field begins.
    start: usize,
    /// The name of each field, and where it ends.
    fields: Vec<(Cow<'static, str>, usize)>,
    key: Option<String>,
    /// Whether an object with a single name stands around it.
    around: bool,
}

/// The RFC sorts by UTF-16 code units, which differs from bytes above U+FFFF.
fn order(a: &str, b: &str) -> Ordering {
    if a.is_ascii() && b.is_ascii() {
        a.cmp(b)
    } else {
        a.encode_utf16().cmp(b.encode_utf16())
    }
}

impl CanonicalObjectWriter<'_> {
    fn field<T: Serialize + ?Sized>(&mut self, name: Cow<'static, str>, value: &T) -> Result {
        serde_json::to_writer(&mut *self.out, &name)?;
        self.out.push(b':');
        value.serialize(below(self.out, self.depth)?)?;
        self.out.push(b',');
        self.fields.push((name, self.out.len()));
        Ok(())
    }

    fn finish(self) {
        let Self {
            out, start, fields, ..
        } = self;
        let sorted = |pair: &[(Cow<'_, str>, usize)]| order(&pair[0].0, &pair[1].0).is_lt();
        if !fields.windows(2).all(sorted) {
            rearrange(out, start, &fields);
        }
        if out.len() > start {
            out.pop();
        }
        out.push(b'}');
        if self.around {
            out.push(b'}');
        }
    }
}

/// Puts fields in order. Of two with one name the later counts, as in any map.
fn rearrange(out: &mut Vec<u8>, start: usize, fields: &[(Cow<'_, str>, usize)]) {
    let written = out.split_off(start);
    let mut begin = 0;
    let mut pieces: Vec<(&str, &[u8])> = Vec::with_capacity(fields.len());
    for (name, end) in fields {
        let end = end - start;
        pieces.push((name, &written[begin..end]));
        begin = end;
    }
    pieces.sort_by(|(a, _), (b, _)| order(a, b));
    for (index, (name, piece)) in pieces.iter().enumerate() {
        if pieces.get(index + 1).is_none_or(|(next, _)| next != name) {
            out.extend_from_slice(piece);
        }
    }
}

impl ser::SerializeMap for CanonicalObjectWriter<'_> {
    type Ok = ();
    type Error = CanonicalError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result {
        self.key = Some(key.serialize(Name)?);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result {
        let name = self.key.take().unwrap_or_default();
        self.field(name.into(), value)
    }

    fn end(self) -> Result {
        self.finish();
        Ok(())
    }
}

macro_rules! object {
    ($($kind:ident),*) => { $(
        impl ser::$kind for CanonicalObjectWriter<'_> {
            type Ok = ();
            type Error = CanonicalError;
            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result {
                self.field(name.into(), value)
            }
            fn end(self) -> Result {
                self.finish();
                Ok(())
            }
        }
    )* };
}
object!(SerializeStruct, SerializeStructVariant);

/// The name of a map's field: a text, or what can be spelled as one.
struct Name;

fn no_name<T>() -> Result<T> {
    Err(ser::Error::custom("the name of a field must be a text"))
}

macro_rules! spelled {
    ($($method:ident $type:ty),*) => { $(
        fn $method(self, value: $type) -> Result<String> {
            Ok(value.to_string())
        }
    )* };
}

macro_rules! nameless {
    ($($method:ident($($argument:ty),*) -> $result:ty),*) => { $(
        fn $method(self, $(_: $argument),*) -> Result<$result> {
            no_name()
        }
    )* };
}

impl ser::Serializer for Name {
    type Ok = String;
    type Error = CanonicalError;
    type SerializeSeq = Impossible<String, CanonicalError>;
    type SerializeTuple = Impossible<String, CanonicalError>;
    type SerializeTupleStruct = Impossible<String, CanonicalError>;
    type SerializeTupleVariant = Impossible<String, CanonicalError>;
    type SerializeMap = Impossible<String, CanonicalError>;
    type SerializeStruct = Impossible<String, CanonicalError>;
    type SerializeStructVariant = Impossible<String, CanonicalError>;

    spelled!(
        serialize_bool bool, serialize_char char, serialize_str &str,
        serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64,
        serialize_i128 i128,
        serialize_u8 u8, serialize_u16 u16, serialize_u32 u32, serialize_u64 u64,
        serialize_u128 u128
    );

    nameless!(
        serialize_f32(f32) -> String,
        serialize_f64(f64) -> String,
        serialize_bytes(&[u8]) -> String,
        serialize_none() -> String,
        serialize_unit() -> String,
        serialize_unit_struct(&'static str) -> String,
        serialize_seq(Option<usize>) -> Self::SerializeSeq,
        serialize_tuple(usize) -> Self::SerializeTuple,
        serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct,
        serialize_tuple_variant(&'static str, u32, &'static str, usize)
            -> Self::SerializeTupleVariant,
        serialize_map(Option<usize>) -> Self::SerializeMap,
        serialize_struct(&'static str, usize) -> Self::SerializeStruct,
        serialize_struct_variant(&'static str, u32, &'static str, usize)
            -> Self::SerializeStructVariant
    );

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<String> {
        value.serialize(self)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<String> {
        Ok(variant.to_owned())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<String> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<String> {
        no_name()
    }
}

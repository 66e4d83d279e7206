//! The few calls of the engine's C interface that rquickjs lacks or makes slower.
//!
//! Every function here takes and returns values of rquickjs, which own their references. No
//! function runs code of a script, unless its description mentions it.

use std::ffi::c_int;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::NonNull;

use rquickjs::{Ctx, Value, qjs};

/// The kind of a value, without a look at its prototype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Undefined,
    Null,
    Bool,
    Number,
    Text,
    Symbol,
    BigInt,
    Function,
    Array,
    Proxy,
    Promise,
    Date,
    Error,
    Object,
    Internal,
}

/// An own property, read without running a getter.
pub(crate) enum Property<'js> {
    Value(Value<'js>),
    Accessor,
    Missing,
}

/// An exception is pending in the context.
#[derive(Debug)]
pub(crate) struct Thrown;

pub(crate) fn kind(value: &Value<'_>) -> Kind {
    let raw = value.as_raw();
    // SAFETY: reading the tag of a live value.
    let tag = unsafe { qjs::JS_VALUE_GET_NORM_TAG(raw) };
    match tag {
        qjs::JS_TAG_UNDEFINED | qjs::JS_TAG_UNINITIALIZED => Kind::Undefined,
        qjs::JS_TAG_NULL => Kind::Null,
        qjs::JS_TAG_BOOL => Kind::Bool,
        qjs::JS_TAG_INT | qjs::JS_TAG_FLOAT64 => Kind::Number,
        qjs::JS_TAG_STRING | qjs::JS_TAG_STRING_ROPE => Kind::Text,
        qjs::JS_TAG_SYMBOL => Kind::Symbol,
        qjs::JS_TAG_BIG_INT | qjs::JS_TAG_SHORT_BIG_INT => Kind::BigInt,
        qjs::JS_TAG_OBJECT => object_kind(value),
        _ => Kind::Internal,
    }
}

fn object_kind(value: &Value<'_>) -> Kind {
    let raw = value.as_raw();
    // SAFETY: `raw` is a live object; these calls compare its class id.
    unsafe {
        if qjs::JS_IsArray(raw) {
            Kind::Array
        } else if qjs::JS_IsProxy(raw) {
            Kind::Proxy
        } else if qjs::JS_IsFunction(value.ctx().as_raw().as_ptr(), raw) {
            Kind::Function
        } else if qjs::JS_IsPromise(raw) {
            Kind::Promise
        } else if qjs::JS_IsDate(raw) {
            Kind::Date
        } else if qjs::JS_IsError(raw) {
            Kind::Error
        } else {
            Kind::Object
        }
    }
}

/// Whether a value is an object.
pub(crate) fn is_object(value: &Value<'_>) -> bool {
    // SAFETY: reading the tag of a live value.
    unsafe { qjs::JS_VALUE_GET_NORM_TAG(value.as_raw()) == qjs::JS_TAG_OBJECT }
}

/// The class of an object.
pub(crate) fn class_id(value: &Value<'_>) -> u32 {
    // SAFETY: the call checks the tag of the value.
    unsafe { qjs::JS_GetClassID(value.as_raw()) }
}

/// Passes the text of a string to `read`. `None` if the value is no string, or memory is exhausted.
///
/// rquickjs assumes that strings are valid UTF-8, but a script can build a half of a surrogate
/// pair; here it becomes U+FFFD.
pub(crate) fn with_text<R>(value: &Value<'_>, read: impl FnOnce(&str) -> R) -> Option<R> {
    if kind(value) != Kind::Text {
        return None;
    }
    let context = value.ctx().as_raw().as_ptr();
    let mut length = 0;
    // SAFETY: the value is a live string. The result is null, or `length` bytes that live until
    // they are freed below.
    unsafe {
        let start = qjs::JS_ToCStringLen2(context, &raw mut length, value.as_raw(), false);
        if start.is_null() {
            value.ctx().catch();
            return None;
        }
        let guard = CText { context, start };
        let bytes = std::slice::from_raw_parts(start.cast::<u8>(), length as usize);
        let result = match std::str::from_utf8(bytes) {
            Ok(text) => read(text),
            Err(_) => read(&without_halves(bytes)),
        };
        drop(guard);
        Some(result)
    }
}

/// A text with each half of a surrogate pair, three bytes of the engine that begin with 0xED, replaced
/// by one U+FFFD, as in browsers.
fn without_halves(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        // The next two bytes are chunks of their own.
        if chunk.invalid() == [0xed] {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    text
}

/// A text that the engine lends.
struct CText {
    context: *mut qjs::JSContext,
    start: *const std::ffi::c_char,
}

impl Drop for CText {
    fn drop(&mut self) {
        // SAFETY: the text is freed once, in the context that lent it.
        unsafe { qjs::JS_FreeCString(self.context, self.start) };
    }
}

/// The length of an array. Of any other object, a getter may run.
pub(crate) fn length(array: &Value<'_>) -> Result<usize, Thrown> {
    let mut length = 0;
    let context = array.ctx().as_raw().as_ptr();
    // SAFETY: the value is a live object.
    let status = unsafe { qjs::JS_GetLength(context, array.as_raw(), &raw mut length) };
    if status < 0 { Err(Thrown) } else { Ok(usize::try_from(length).unwrap_or(0)) }
}

/// An element of an array.
pub(crate) fn element<'js>(array: &Value<'js>, index: u32) -> Result<Property<'js>, Thrown> {
    let context = array.ctx().as_raw().as_ptr();
    // SAFETY: the atom is freed after its use.
    unsafe {
        let atom = qjs::JS_NewAtomUInt32(context, index);
        let found = own_property(array, atom);
        qjs::JS_FreeAtom(context, atom);
        found
    }
}

/// An own property by name.
pub(crate) fn property<'js>(object: &Value<'js>, name: &str) -> Result<Property<'js>, Thrown> {
    let context = object.ctx().as_raw().as_ptr();
    // SAFETY: the name is copied; the atom is freed after its use.
    unsafe {
        let atom = qjs::JS_NewAtomLen(context, name.as_ptr().cast(), name.len() as _);
        if atom == qjs::__JS_ATOM_NULL {
            return Err(Thrown);
        }
        let found = own_property(object, atom);
        qjs::JS_FreeAtom(context, atom);
        found
    }
}

/// Passes the names of all own enumerable properties with string keys, and their values, to
/// `visit`, until it returns an error.
pub(crate) fn properties<'js, E: From<Thrown>>(
    object: &Value<'js>,
    mut visit: impl FnMut(usize, &str, Property<'js>) -> Result<(), E>,
) -> Result<(), E> {
    let context = object.ctx().as_raw().as_ptr();
    let mut table = Table { context, first: std::ptr::null_mut(), length: 0 };
    let flags = (qjs::JS_GPN_STRING_MASK | qjs::JS_GPN_ENUM_ONLY).cast_signed();
    let (first, length) = (&raw mut table.first, &raw mut table.length);
    // SAFETY: the object is live. On success the table has `length` entries, freed by `Table`.
    if unsafe { qjs::JS_GetOwnPropertyNames(context, first, length, object.as_raw(), flags) } < 0 {
        return Err(Thrown.into());
    }
    for index in 0..table.length as usize {
        // SAFETY: `index` is below the length of the table. The text is freed by `CText`.
        let (found, name) = unsafe {
            let atom = (*table.first.add(index)).atom;
            let mut length = 0;
            let start = qjs::JS_AtomToCStringLen(context, &raw mut length, atom);
            if start.is_null() {
                return Err(Thrown.into());
            }
            let guard = CText { context, start };
            let bytes = std::slice::from_raw_parts(start.cast::<u8>(), length as usize);
            let name = String::from_utf8_lossy(bytes).into_owned();
            drop(guard);
            (own_property(object, atom)?, name)
        };
        visit(table.length as usize, &name, found)?;
    }
    Ok(())
}

/// The names of an object's properties.
struct Table {
    context: *mut qjs::JSContext,
    first: *mut qjs::JSPropertyEnum,
    length: u32,
}

impl Drop for Table {
    fn drop(&mut self) {
        if !self.first.is_null() {
            // SAFETY: the engine has allocated the table, which is freed once.
            unsafe { qjs::JS_FreePropertyEnum(self.context, self.first, self.length) };
        }
    }
}

/// # Safety
/// `atom` is an atom of the object's context.
pub(super) unsafe fn own_property<'js>(
    object: &Value<'js>,
    atom: qjs::JSAtom,
) -> Result<Property<'js>, Thrown> {
    let ctx = object.ctx();
    let undefined = qjs::JS_UNDEFINED;
    let mut found = qjs::JSPropertyDescriptor {
        flags: 0,
        value: undefined,
        getter: undefined,
        setter: undefined,
    };
    // SAFETY: `object` is live, and `atom` by this function's contract. The values of the descriptor
    // are owned by the caller: getter and setter of an accessor, or else the value. The others are
    // undefined.
    unsafe {
        let context = ctx.as_raw().as_ptr();
        let status = qjs::JS_GetOwnProperty(context, &raw mut found, object.as_raw(), atom);
        if status < 0 {
            return Err(Thrown);
        }
        if status == 0 {
            return Ok(Property::Missing);
        }
        if found.flags & qjs::JS_PROP_GETSET.cast_signed() != 0 {
            qjs::JS_FreeValue(context, found.getter);
            qjs::JS_FreeValue(context, found.setter);
            return Ok(Property::Accessor);
        }
        Ok(Property::Value(Value::from_raw(ctx.clone(), found.value)))
    }
}

/// Defines an own property, without running a setter.
pub(crate) fn define<'js>(
    object: &Value<'js>,
    name: &str,
    value: &Value<'js>,
) -> Result<(), Thrown> {
    let context = object.ctx().as_raw().as_ptr();
    let flags = qjs::JS_PROP_C_W_E.cast_signed();
    // SAFETY: the name is copied. The engine takes the reference of the value, which is duplicated
    // for it, and the atom is freed after its use.
    unsafe {
        let atom = qjs::JS_NewAtomLen(context, name.as_ptr().cast(), name.len() as _);
        if atom == qjs::__JS_ATOM_NULL {
            return Err(Thrown);
        }
        let owned = qjs::JS_DupValue(context, value.as_raw());
        let status = qjs::JS_DefinePropertyValue(context, object.as_raw(), atom, owned, flags);
        qjs::JS_FreeAtom(context, atom);
        if status < 0 { Err(Thrown) } else { Ok(()) }
    }
}

/// A new array with these elements. No setter runs.
pub(crate) fn new_array<'js>(
    ctx: &Ctx<'js>,
    elements: Vec<Value<'js>>,
) -> Result<Value<'js>, Thrown> {
    let count = c_int::try_from(elements.len()).map_err(|_| Thrown)?;
    let raw: Vec<qjs::JSValue> = elements.into_iter().map(into_raw).collect();
    // SAFETY: the engine takes the references of the elements, also if it fails. The result is owned.
    unsafe {
        let array = qjs::JS_NewArrayFrom(ctx.as_raw().as_ptr(), count, raw.as_ptr());
        owned(ctx, array)
    }
}

/// The bytes of a `Uint8Array`; `None` for any other value.
pub(crate) fn bytes_of(value: &Value<'_>) -> Option<Vec<u8>> {
    const UINT8: c_int = qjs::JSTypedArrayEnum_JS_TYPED_ARRAY_UINT8.cast_signed();
    let mut length = 0;
    // SAFETY: the value is live; its bytes are copied before any code of the script can run.
    unsafe {
        if qjs::JS_GetTypedArrayType(value.as_raw()) != UINT8 {
            return None;
        }
        let context = value.ctx().as_raw().as_ptr();
        let start = qjs::JS_GetUint8Array(context, &raw mut length, value.as_raw());
        if start.is_null() {
            // A detached or empty array.
            if qjs::JS_HasException(context) {
                value.ctx().catch();
            }
            return Some(Vec::new());
        }
        Some(std::slice::from_raw_parts(start, length as usize).to_vec())
    }
}

/// Overwrites the bytes of a `Uint8Array` from its start.
pub(crate) fn fill_bytes(value: &Value<'_>, bytes: &[u8]) -> bool {
    const UINT8: c_int = qjs::JSTypedArrayEnum_JS_TYPED_ARRAY_UINT8.cast_signed();
    let mut length = 0;
    // SAFETY: the value is live; at most the length of its buffer is written, before any code of
    // the script can run.
    unsafe {
        if qjs::JS_GetTypedArrayType(value.as_raw()) != UINT8 {
            return false;
        }
        let context = value.ctx().as_raw().as_ptr();
        let start = qjs::JS_GetUint8Array(context, &raw mut length, value.as_raw());
        if start.is_null() {
            if qjs::JS_HasException(context) {
                value.ctx().catch();
            }
            return bytes.is_empty();
        }
        let count = bytes.len().min(length as usize);
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), start, count);
        true
    }
}

/// A new `Uint8Array` with a copy of `bytes`.
pub(crate) fn new_bytes<'js>(ctx: &Ctx<'js>, bytes: &[u8]) -> Result<Value<'js>, Thrown> {
    let context = ctx.as_raw().as_ptr();
    // SAFETY: the engine copies the bytes. The result is owned.
    unsafe {
        let array = qjs::JS_NewUint8ArrayCopy(context, bytes.as_ptr(), bytes.len() as _);
        owned(ctx, array)
    }
}

/// Takes an owned result of the engine.
///
/// # Safety
/// The caller owns a reference of `value`, which belongs to the context.
pub(super) unsafe fn owned<'js>(ctx: &Ctx<'js>, value: qjs::JSValue) -> Result<Value<'js>, Thrown> {
    // SAFETY: by this function's contract.
    unsafe {
        if qjs::JS_IsException(value) {
            return Err(Thrown);
        }
        Ok(Value::from_raw(ctx.clone(), value))
    }
}

/// A value that the engine lends. It counts no reference, which a page would do for each hole.
pub(crate) struct Lent<'a, 'js> {
    value: ManuallyDrop<Value<'js>>,
    lender: PhantomData<&'a Ctx<'js>>,
}

impl<'js> Deref for Lent<'_, 'js> {
    type Target = Value<'js>;

    fn deref(&self) -> &Value<'js> {
        &self.value
    }
}

/// A value that the engine lends.
///
/// # Safety
/// `value` belongs to the context and is live as long as `ctx` is borrowed.
pub(super) unsafe fn lent<'a, 'js>(ctx: &'a Ctx<'js>, value: qjs::JSValue) -> Lent<'a, 'js> {
    // SAFETY: by this function's contract. The copy of the context and the value are not dropped, so
    // no reference is given back that was not taken.
    let value = unsafe { Value::from_raw(std::ptr::read(ctx), value) };
    Lent { value: ManuallyDrop::new(value), lender: PhantomData }
}

/// Gives a reference to the engine.
pub(super) fn into_raw(value: Value<'_>) -> qjs::JSValue {
    let value = ManuallyDrop::new(value);
    // SAFETY: the value is not used again: its reference of the context is given back here, and the
    // caller gives its own reference to the engine.
    drop(unsafe { std::ptr::read(value.ctx()) });
    value.as_raw()
}

/// The context of a callback.
///
/// # Safety
/// `context` is the context that calls, and the result does not outlive the callback.
pub(super) unsafe fn context<'js>(context: *mut qjs::JSContext) -> Option<Ctx<'js>> {
    // SAFETY: by this function's contract.
    NonNull::new(context).map(|context| unsafe { Ctx::from_raw(context) })
}

/// The address of an object, by which two references to it are recognized.
pub(crate) fn identity(object: &Value<'_>) -> usize {
    // SAFETY: the value is live; its address is not dereferenced.
    unsafe { qjs::JS_VALUE_GET_PTR(object.as_raw()) as usize }
}

//! Objects with known keys, made with few steps of the engine.

use rquickjs::{Ctx, Object, Persistent, Value, qjs};

use super::raw::{self, Thrown};

/// Columns for which every prefix is kept: their memory grows with the square of the number.
const MAX_PREFIXES: usize = 32;

/// The keys of records in one engine.
///
/// The engine describes the keys of an object by a *shape*, and finds the shape of an object with one
/// more key by a hash, if an object with that shape lives. Otherwise it makes a new shape for each
/// object. So one object is kept for each prefix of the keys.
pub(crate) struct RecordLayout {
    /// Kept alive by the shape of the last prefix, which no script can reach.
    atoms: Box<[qjs::JSAtom]>,
    _prefixes: Vec<Persistent<Object<'static>>>,
}

impl RecordLayout {
    pub(crate) fn new(ctx: &Ctx<'_>, names: &[String]) -> Result<Self, Thrown> {
        let context = ctx.as_raw().as_ptr();
        let mut prefixes = Vec::new();
        let first = if names.len() > MAX_PREFIXES { names.len() } else { 0 };
        for length in first..=names.len() {
            let object = Object::new(ctx.clone()).map_err(|_| Thrown)?;
            let undefined = Value::new_undefined(ctx.clone());
            for name in &names[..length] {
                raw::define(object.as_value(), name, &undefined)?;
            }
            prefixes.push(Persistent::save(ctx, object));
        }
        let atom = |name: &String| {
            // SAFETY: the name is copied. The engine returns the atom that the last prefix keeps
            // alive, so the reference of this call is given back.
            unsafe {
                let atom = qjs::JS_NewAtomLen(context, name.as_ptr().cast(), name.len() as _);
                if atom == qjs::__JS_ATOM_NULL {
                    return Err(Thrown);
                }
                qjs::JS_FreeAtom(context, atom);
                Ok(atom)
            }
        };
        let atoms = names.iter().map(atom).collect::<Result<_, _>>()?;
        Ok(Self { atoms, _prefixes: prefixes })
    }

    /// The own property of an object whose name is the key at this position. No getter runs.
    pub(crate) fn read<'js>(
        &self,
        object: &Value<'js>,
        position: usize,
    ) -> Result<raw::Property<'js>, Thrown> {
        // SAFETY: the layout keeps its atoms alive, and all its keys belong to one engine.
        unsafe { raw::own_property(object, self.atoms[position]) }
    }
}

/// An object that gets its columns one by one.
pub(crate) struct RecordWriter<'l, 'js> {
    layout: &'l RecordLayout,
    record: Value<'js>,
    /// The columns that are written.
    written: usize,
}

impl<'l, 'js> RecordWriter<'l, 'js> {
    pub(crate) fn new(ctx: &Ctx<'js>, layout: &'l RecordLayout) -> Result<Self, Thrown> {
        // SAFETY: the result is owned.
        let record = unsafe { raw::owned(ctx, qjs::JS_NewObject(ctx.as_raw().as_ptr()))? };
        Ok(Self { layout, record, written: 0 })
    }

    pub(crate) fn null(&mut self) -> Result<(), Thrown> {
        self.define(|_| qjs::JS_NULL)
    }

    pub(crate) fn bool(&mut self, truth: bool) -> Result<(), Thrown> {
        self.define(|_| if truth { qjs::JS_TRUE } else { qjs::JS_FALSE })
    }

    pub(crate) fn number(&mut self, number: f64) -> Result<(), Thrown> {
        self.define(|_| qjs::JS_NewFloat64(number))
    }

    pub(crate) fn text(&mut self, text: &str) -> Result<(), Thrown> {
        // SAFETY: the engine copies the text. The result is owned, or an exception.
        self.define(|context| unsafe {
            qjs::JS_NewStringLen(context, text.as_ptr().cast(), text.len() as _)
        })
    }

    pub(crate) fn value(&mut self, value: Value<'js>) -> Result<(), Thrown> {
        self.define(|_| raw::into_raw(value))
    }

    /// The record. The caller has written all columns.
    pub(crate) fn finish(self) -> Value<'js> {
        self.record
    }

    /// Gives the record its next column, an owned value or an exception.
    #[inline]
    fn define(
        &mut self,
        make: impl FnOnce(*mut qjs::JSContext) -> qjs::JSValue,
    ) -> Result<(), Thrown> {
        let context = self.record.ctx().as_raw().as_ptr();
        let flags = qjs::JS_PROP_C_W_E.cast_signed();
        let atom = self.layout.atoms[self.written];
        self.written += 1;
        let value = make(context);
        // SAFETY: the layout keeps its atoms alive. The engine takes the reference of the value.
        unsafe {
            if qjs::JS_IsException(value) {
                return Err(Thrown);
            }
            let record = self.record.as_raw();
            let status = qjs::JS_DefinePropertyValue(context, record, atom, value, flags);
            if status < 0 { Err(Thrown) } else { Ok(()) }
        }
    }
}

// Reads plain JavaScript values that the typed adapter has already checked; a wrong shape is a bug and becomes a TypeError.
#pragma once

#include <napi.h>

#include <cstdint>
#include <string>
#include <vector>

namespace rollscope::binding {

inline Napi::Value property(const Napi::Object& object, const char* name) {
  Napi::Value value = object.Get(name);
  if (value.IsUndefined()) throw Napi::TypeError::New(object.Env(), std::string("the property ") + name + " is missing");
  return value;
}
inline Napi::Object object_at(const Napi::Object& object, const char* name) {
  const Napi::Value value = property(object, name);
  if (!value.IsObject()) throw Napi::TypeError::New(object.Env(), std::string(name) + " is not an object");
  return value.As<Napi::Object>();
}
inline double number_at(const Napi::Object& object, const char* name) {
  const Napi::Value value = property(object, name);
  if (!value.IsNumber()) throw Napi::TypeError::New(object.Env(), std::string(name) + " is not a number");
  return value.As<Napi::Number>().DoubleValue();
}
inline int64_t integer_at(const Napi::Object& object, const char* name) { return static_cast<int64_t>(number_at(object, name)); }
inline bool flag_at(const Napi::Object& object, const char* name) { return property(object, name).ToBoolean().Value(); }
inline std::string text_at(const Napi::Object& object, const char* name) { return property(object, name).ToString().Utf8Value(); }

/// A copy of a typed array's elements: jobs outlive the call.
template <typename Array, typename Element>
std::vector<Element> elements(const Napi::Value& value, const char* name) {
  if (!value.IsTypedArray()) throw Napi::TypeError::New(value.Env(), std::string(name) + " is not a typed array");
  const auto typed = value.As<Napi::TypedArray>();
  if (typed.ElementSize() != sizeof(Element))
    throw Napi::TypeError::New(value.Env(), std::string(name) + " has elements of the wrong size");
  const Array array = value.As<Array>();
  return std::vector<Element>(array.Data(), array.Data() + array.ElementLength());
}
inline std::vector<int32_t> integers(const Napi::Value& value, const char* name) { return elements<Napi::Int32Array, int32_t>(value, name); }
inline std::vector<float> floats(const Napi::Value& value, const char* name) { return elements<Napi::Float32Array, float>(value, name); }
inline std::vector<double> doubles(const Napi::Value& value, const char* name) { return elements<Napi::Float64Array, double>(value, name); }
inline std::vector<uint8_t> bytes(const Napi::Value& value, const char* name) { return elements<Napi::Uint8Array, uint8_t>(value, name); }
inline std::vector<int16_t> shorts(const Napi::Value& value, const char* name) { return elements<Napi::Int16Array, int16_t>(value, name); }

inline std::vector<std::string> texts(const Napi::Value& value) {
  const auto array = value.As<Napi::Array>();
  std::vector<std::string> result;
  for (uint32_t i = 0; i < array.Length(); i++) result.push_back(array.Get(i).ToString().Utf8Value());
  return result;
}

inline Napi::Float32Array to_array(Napi::Env env, const std::vector<float>& values) {
  Napi::Float32Array array = Napi::Float32Array::New(env, values.size());
  std::copy(values.begin(), values.end(), array.Data());
  return array;
}

}  // namespace rollscope::binding

// OrderedObject: the keys and values of a JSON object in the order in which they were added. The
// objects of OrderedJson (core/ordered_json.h) have this type.
//
// nlohmann::ordered_map compares each key with all keys before it, which takes quadratic time for
// bodies of many keys. A hash map does, too, if a client sends keys that collide. Here the time of
// a look-up is logarithmic in the number of keys, whatever keys a client sends.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <list>
#include <set>
#include <utility>

namespace pagoda {

// A list in the order of insertion and an index over it. References and iterators stay valid until
// their key is erased. Two objects are equal if they have the same keys and values in any order, as
// in JSON. basic_json passes Compare and Allocator to every container; this one does not use them.
// Keys are compared by <, so that any type that compares with Key can be looked up.
template <typename Key, typename T, typename Compare, typename Allocator>
class OrderedObject {
 public:
  // The names of a standard container.
  // NOLINTBEGIN(readability-identifier-naming)
  using key_type = Key;
  using mapped_type = T;
  using value_type = std::pair<const Key, T>;
  using size_type = std::size_t;
  using iterator = typename std::list<value_type>::iterator;
  using const_iterator = typename std::list<value_type>::const_iterator;

  // Callable only with types that compare with a key. basic_json accepts a type as a key if it can
  // call this class with it.
  class key_compare {
    static const Key& key_of(const iterator& place) { return place->first; }
    template <typename K>
    static const K& key_of(const K& key) {
      return key;
    }

   public:
    using is_transparent = void;
    template <typename A, typename B>
    auto operator()(const A& a, const B& b) const -> decltype(key_of(a) < key_of(b)) {
      return key_of(a) < key_of(b);
    }
  };
  // NOLINTEND(readability-identifier-naming)

  OrderedObject() = default;
  template <typename InputIterator>
  OrderedObject(InputIterator first, InputIterator last) {
    insert(first, last);
  }
  OrderedObject(std::initializer_list<value_type> values) { insert(values.begin(), values.end()); }
  OrderedObject(const OrderedObject& other) { insert(other.begin(), other.end()); }
  OrderedObject(OrderedObject&& other) noexcept { swap(other); }
  OrderedObject& operator=(OrderedObject other) noexcept {
    swap(other);
    return *this;
  }
  ~OrderedObject() = default;

  void swap(OrderedObject& other) noexcept {
    elements_.swap(other.elements_);
    index_.swap(other.index_);
  }

  iterator begin() { return elements_.begin(); }
  iterator end() { return elements_.end(); }
  const_iterator begin() const { return elements_.begin(); }
  const_iterator end() const { return elements_.end(); }
  const_iterator cbegin() const { return elements_.begin(); }
  const_iterator cend() const { return elements_.end(); }

  bool empty() const { return elements_.empty(); }
  size_type size() const { return elements_.size(); }
  size_type max_size() const { return elements_.max_size(); }

  template <typename K>
  iterator find(const K& key) {
    const auto found = index_.find(key);
    return found == index_.end() ? elements_.end() : *found;
  }
  template <typename K>
  const_iterator find(const K& key) const {
    const auto found = index_.find(key);
    return found == index_.end() ? elements_.end() : const_iterator(*found);
  }
  template <typename K>
  size_type count(const K& key) const {
    return index_.count(key);
  }

  // Returns the value of a key, which must exist.
  template <typename K>
  const T& at(const K& key) const {
    return find(key)->second;
  }
  // Returns the value of `key`. If there is none, appends the key with null.
  T& operator[](const Key& key) { return emplace(key, nullptr).first->second; }

  // Adds a key and its value. Keeps the value of a key that exists, like std::map.
  template <typename K, typename Value>
  std::pair<iterator, bool> emplace(K&& key, Value&& value) {
    const auto place = index_.lower_bound(key);
    if (place != index_.end() && !(key < (*place)->first)) return {*place, false};
    elements_.emplace_back(std::forward<K>(key), std::forward<Value>(value));
    const iterator added = std::prev(elements_.end());
    index_.insert(place, added);
    return {added, true};
  }
  std::pair<iterator, bool> insert(const value_type& value) {
    return emplace(value.first, value.second);
  }
  template <typename InputIterator>
  void insert(InputIterator first, InputIterator last) {
    for (; first != last; ++first) emplace(first->first, first->second);
  }

  iterator erase(const_iterator at) {
    index_.erase(index_.find(at->first));
    return elements_.erase(at);
  }
  void clear() {
    index_.clear();
    elements_.clear();
  }

  friend bool operator==(const OrderedObject& a, const OrderedObject& b) {
    return std::equal(a.index_.begin(), a.index_.end(), b.index_.begin(), b.index_.end(),
                      [](const iterator& x, const iterator& y) { return *x == *y; });
  }
  // Compares in the order of keys, each with its value.
  friend std::partial_ordering operator<=>(const OrderedObject& a, const OrderedObject& b) {
    return std::lexicographical_compare_three_way(
        a.index_.begin(), a.index_.end(), b.index_.begin(), b.index_.end(),
        [](const iterator& x, const iterator& y) {
          if (*x < *y) return std::partial_ordering::less;
          return *y < *x ? std::partial_ordering::greater : std::partial_ordering::equivalent;
        });
  }

 private:
  std::list<value_type> elements_;
  std::set<iterator, key_compare> index_;
};

}  // namespace pagoda

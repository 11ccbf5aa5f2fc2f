// PrivateFolder: an open folder that only this process's user can read and write. Files below it
// are opened relative to its descriptor, without following links. So a user who may change its path
// or its parent cannot lead this process to another place.
//
// Thread-compatible; several processes of one user may use the same folder.
#pragma once

#include <string>
#include <vector>

#include "core/file_descriptor.h"
#include "core/status.h"

namespace pagoda {

class PrivateFolder {
 public:
  enum class Wish {
    kFound,  // a missing folder is kNotFound
    kMade,   // a missing folder is made
  };

  // Opens the folder `name` in `parent`. The parent may be a link and may belong to any user, like
  // /tmp or a volume of root's that a group may write. If `name` is this user's but open to its
  // group or others, their access is removed. kInvalidArgument: the parent is writable by all users
  // and not sticky, or `name` is another user's, a link, or writable by all users. kUnavailable: a
  // system error.
  static Result<PrivateFolder> open(const std::string& parent, const std::string& name, Wish wish);
  // Opens a folder in this one; errors as above.
  Result<PrivateFolder> open_below(const std::string& name, Wish wish) const;

  // Returns the names of its entries, in no order. kUnavailable: a system error.
  Result<std::vector<std::string>> names() const;
  int descriptor() const { return descriptor_.get(); }
  const std::string& path() const { return path_; }  // for messages

 private:
  PrivateFolder(FileDescriptor descriptor, std::string path)
      : descriptor_(std::move(descriptor)), path_(std::move(path)) {}
  static Result<PrivateFolder> open_in(int parent, const std::string& name, std::string path,
                                       Wish wish);

  FileDescriptor descriptor_;
  std::string path_;
};

}  // namespace pagoda

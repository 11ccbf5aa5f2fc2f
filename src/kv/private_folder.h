// PrivateFolder: an open folder that this process's user alone can read and write. What is below it
// is reached from its descriptor and through no link. So a user who may change the path to it, or
// the folder that it lies in, leads this process nowhere else.
//
// Thread-compatible; several processes of one user may have the same folder.
#pragma once

#include <string>
#include <vector>

#include "core/file_descriptor.h"
#include "core/status.h"

namespace pagoda {

class PrivateFolder {
 public:
  enum class Wish {
    kFound,  // one that is not there is kNotFound
    kMade,   // one that is not there is made
  };

  // Opens the folder `name` in `parent`. The parent may be any user's, and a link: root's with a
  // group that may write, as volumes are, or /tmp. Where `name` is this user's but lets its group
  // or others in, it no longer does. kInvalidArgument, which says what is wrong: all users may
  // write in the parent and it is not sticky, `name` is another user's or a link or lets all users
  // write; kUnavailable: the system says why.
  static Result<PrivateFolder> open(const std::string& parent, const std::string& name, Wish wish);
  // Opens a folder in this one; errors as above.
  Result<PrivateFolder> open_below(const std::string& name, Wish wish) const;

  // Returns the names of what is in it, in no order. kUnavailable: the system says why.
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

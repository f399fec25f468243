/* examples/image.h: what it reads, what it refuses and how it says so, and what it writes; and that the checks in
 * examples/tour_reference.h notice a NaN. Needs no GPU. */
#include "test.h"
#include "examples/image.h"
#include "examples/tour_reference.h"

#include <unistd.h>
#include <vector>

static std::string join(const std::string &header, std::initializer_list<int> samples) {
  std::string file = header;
  for (int s : samples) file += (char)s;
  return file;
}

/* "WIDTHxHEIGHTxCHANNELS: samples...", or "error: ..." */
static std::string parse(const std::string &file) {
  image im = {0, 0, 0, NULL};
  image_error why;
  /* an exact-size copy, so that a sanitizer sees any read past the end */
  std::vector<unsigned char> exact(file.begin(), file.end());
  if (!image_parse(exact.data(), exact.size(), &im, &why)) return std::string("error: ") + why.text;
  std::string text =
      std::to_string(im.width) + "x" + std::to_string(im.height) + "x" + std::to_string(im.channels) + ":";
  for (size_t i = 0; i < image_bytes(&im); i++) text += " " + std::to_string(im.samples[i]);
  image_free(&im);
  return text;
}

static image noise(size_t width, size_t height, size_t channels, unsigned smooth) {
  image im = {0, 0, 0, NULL};
  image_error why;
  unsigned state = 1;
  EXPECT(image_new(&im, width, height, channels, &why));
  for (size_t i = 0; i < image_bytes(&im); i++) {
    state = state * 1664525 + 1013904223;
    im.samples[i] = (unsigned char)((i / channels % width + i / channels / width) + (state >> 24) / smooth);
  }
  return im;
}

static std::string samples_of(const image &im) { return std::string((char *)im.samples, image_bytes(&im)); }

TEST(gray_and_colour) {
  EXPECT_EQ(parse(join("P5\n3 2\n255\n", {0, 1, 2, 253, 254, 255})), "3x2x1: 0 1 2 253 254 255");
  EXPECT_EQ(parse(join("P6\n1 2\n255\n", {1, 2, 3, 4, 5, 6})), "1x2x3: 1 2 3 4 5 6");
  EXPECT_EQ(parse(join("P5 1 1 255 ", {7})), "1x1x1: 7");
}

TEST(blanks_and_comments) {
  EXPECT_EQ(parse(join("P5\t1\r\n1\v\f255\n", {9})), "1x1x1: 9");
  EXPECT_EQ(parse(join("P5# made by hand\n# 4 4\n 1 # wide\r1#high\n255\n", {9})), "1x1x1: 9");
  EXPECT_EQ(parse(join("P5 1 1 255#no blank but this line's end\n", {9})), "1x1x1: 9");
  EXPECT_EQ(parse(join("P5 0001 1 255\n", {9})), "1x1x1: 9");
  /* one blank ends the header: what looks like a second one, or like a comment, is a sample */
  EXPECT_EQ(parse(join("P5 2 1 255\n", {'\n', '#'})), "2x1x1: 10 35");
}

TEST(other_maxvals_are_scaled) {
  EXPECT_EQ(parse(join("P5 2 1 1\n", {0, 1})), "2x1x1: 0 255");
  EXPECT_EQ(parse(join("P5 3 1 15\n", {0, 7, 15})), "3x1x1: 0 119 255");
  EXPECT_EQ(parse(join("P5 3 1 65535\n", {0, 0, 0x80, 0x00, 0xff, 0xff})), "3x1x1: 0 128 255");
  EXPECT_EQ(parse(join("P5 3 1 256\n", {0, 0, 0, 128, 1, 0})), "3x1x1: 0 128 255");
  EXPECT_EQ(parse(join("P6 1 1 1000\n", {3, 232, 1, 244, 0, 0})), "1x1x3: 255 128 0");
}

TEST(bytes_after_the_picture_are_ignored) {
  EXPECT_EQ(parse(join("P5 1 1 255\n", {7}) + "P5 9 9 255 and more"), "1x1x1: 7");
}

TEST(not_a_picture) {
  EXPECT_EQ(parse(""), "error: the file is empty");
  EXPECT_HAS(parse("P").c_str(), "does not begin with P5 or P6");
  EXPECT_HAS(parse("\x89PNG\r\n").c_str(), "does not begin with P5 or P6");
  EXPECT_HAS(parse("P8 1 1 255 x").c_str(), "does not begin with P5 or P6");
  EXPECT_HAS(parse("p5 1 1 255 x").c_str(), "does not begin with P5 or P6");
  EXPECT_HAS(parse("P51 1 255 x").c_str(), "no blank after P5");
  EXPECT_HAS(parse("P3 1 1 255 1 2 3").c_str(), "P3 pictures are not read");
  EXPECT_HAS(parse("P7\nWIDTH 1").c_str(), "P7 pictures are not read");
}

TEST(bad_headers) {
  EXPECT_EQ(parse("P5"), "error: the header ends before its width");
  EXPECT_EQ(parse("P5 "), "error: the header ends before its width");
  EXPECT_EQ(parse("P5 # 1 1 255 "), "error: the header ends before its width");
  EXPECT_EQ(parse("P5 1"), "error: the header ends before its height");
  EXPECT_EQ(parse("P5 1 1\n"), "error: the header ends before its maxval");
  EXPECT_EQ(parse("P5 1 1 255"), "error: the header ends after its maxval");
  EXPECT_EQ(parse("P5 1 1 255#"), "error: the header ends after its maxval");
  EXPECT_EQ(parse("P5 1 1 255x"), "error: no blank between the maxval and the samples");
  EXPECT_EQ(parse("P5 -1 1 255 x"), "error: the width is negative");
  EXPECT_EQ(parse("P5 1 -1 255 x"), "error: the height is negative");
  EXPECT_EQ(parse("P5 0 1 255 x"), "error: the width is 0");
  EXPECT_EQ(parse("P5 1 0 255 x"), "error: the height is 0");
  EXPECT_EQ(parse("P5 1 1 0 x"), "error: the maxval is 0");
  EXPECT_EQ(parse("P5 1 1 65536 x"), "error: the maxval is larger than 65535");
  EXPECT_EQ(parse("P5 one 1 255 x"), "error: the width is not a number");
  EXPECT_EQ(parse("P5 1 1.5 255 x"), "error: the maxval is not a number");
  EXPECT_EQ(parse("P5 +1 1 255 x"), "error: the width is not a number");
}

TEST(bad_sizes) {
  EXPECT_EQ(parse("P5 268435457 1 255 x"), "error: the width is larger than 268435456");
  EXPECT_EQ(parse("P5 1 99999999999999999999999999999999 255 x"), "error: the height is larger than 268435456");
  EXPECT_EQ(parse("P5 18446744073709551617 1 255 x"), "error: the width is larger than 268435456"); /* 2^64 + 1 */
  EXPECT_EQ(parse("P6 65536 65536 255 x"), "error: 65536 x 65536 pixels are more than the limit of 268435456");
  EXPECT_EQ(parse("P6 16384 16384 65535 x"),
            "error: truncated: 16384 x 16384 pixels take 1610612736 bytes, and only 1 are there");
  EXPECT_EQ(parse(join("P6 1 2 255\n", {1, 2, 3, 4, 5})),
            "error: truncated: 1 x 2 pixels take 6 bytes, and only 5 are there");
  EXPECT_EQ(parse("P5 1 1 255\n"), "error: truncated: 1 x 1 pixels take 1 bytes, and only 0 are there");
}

TEST(samples_above_the_maxval) {
  EXPECT_EQ(parse(join("P5 2 1 15\n", {15, 16})), "error: sample 1 is 16, above the maxval of 15");
  EXPECT_EQ(parse(join("P5 1 1 256\n", {1, 1})), "error: sample 0 is 257, above the maxval of 256");
}

TEST(every_prefix_and_every_changed_byte) { /* each ends in a picture or in a reason, and a sanitizer stays silent */
  std::string good = join("P6 # c\n2 2\n255\n", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  for (size_t n = 0; n < good.size(); n++) EXPECT_HAS(parse(good.substr(0, n)).c_str(), "error: ");
  for (size_t at = 0; at < good.size(); at++)
    for (int byte = 0; byte < 256; byte++) {
      std::string changed = good;
      changed[at] = (char)byte;
      EXPECT(!parse(changed).empty());
    }
}

TEST(new_pictures) {
  image im = {0, 0, 0, NULL};
  image_error why;
  EXPECT(image_new(&im, 3, 5, 3, &why));
  EXPECT_EQ(image_bytes(&im), (size_t)45);
  EXPECT_EQ(samples_of(im), std::string(45, '\0'));
  image_free(&im);
  EXPECT(!image_new(&im, 0, 5, 1, &why));
  EXPECT_HAS(why.text, "0 x 5 has no pixels");
  EXPECT(!image_new(&im, (size_t)1 << 20, (size_t)1 << 20, 1, &why));
  EXPECT_HAS(why.text, "more than the limit");
  EXPECT(!image_new(&im, SIZE_MAX, SIZE_MAX, 3, &why));
  for (size_t channels : {(size_t)0, (size_t)2, (size_t)4, SIZE_MAX}) {
    EXPECT(!image_new(&im, 3, 5, channels, &why));
    EXPECT_EQ(std::string(why.text), "a picture has 1 or 3 channels, not " + std::to_string(channels));
  }
}

TEST(placing) {
  image sheet = {0, 0, 0, NULL}, wide = {0, 0, 0, NULL}, dot = {0, 0, 0, NULL};
  image_error why;
  EXPECT(image_new(&sheet, 4, 4, 3, &why) && image_new(&wide, 4, 2, 1, &why) && image_new(&dot, 1, 1, 3, &why));
  memcpy(wide.samples, "\x0a\x14\x64\xc8\x1e\x28\x96\xfa", 8);
  image_place(&sheet, 1, 0, 2, 3, &wide); /* halved to 2 x 1, in the middle row of the cell */
  EXPECT_EQ(samples_of(sheet), std::string(15, '\0') + "\x19\x19\x19\xaf\xaf\xaf" + std::string(27, '\0'));
  memcpy(dot.samples, "\x01\x02\x03", 3);
  image_place(&sheet, 0, 0, 4, 4, &dot); /* enlarged */
  for (size_t i = 0; i < 48; i++) EXPECT_EQ(sheet.samples[i], i % 3 + 1);
  image_free(&sheet);
  image_free(&wide);
  image_free(&dot);
}

TEST(checksums_match_published_values) {
  EXPECT_EQ(image_crc32(0, "123456789", 9), 0xcbf43926u);
  EXPECT_EQ(image_crc32(image_crc32(0, "1234", 4), "56789", 5), 0xcbf43926u);
  EXPECT_EQ(image_crc32(0, "IEND", 4), 0xae426082u);
  EXPECT_EQ(image_crc32(0, "", 0), 0u);
  EXPECT_EQ(image_adler32("Wikipedia", 9), 0x11e60398u);
  EXPECT_EQ(image_adler32("", 0), 1u);
}

/* A decoder of what the writer may emit, written from RFC 1950, RFC 1951 and the PNG specification: one block with its
 * own codes, read bit by bit. It throws on anything that those documents forbid. */
struct inflater {
  const std::string &data;
  size_t at;
  int bit() {
    if (at / 8 >= data.size()) throw std::runtime_error("deflate: out of data");
    int b = data[at / 8] >> at % 8 & 1;
    at++;
    return b;
  }
  int bits(int n) {
    int v = 0;
    for (int i = 0; i < n; i++) v |= bit() << i;
    return v;
  }
  int symbol(const std::vector<int> &lengths) { /* canonical codes: count off those of each length in turn */
    int code = 0, first = 0;
    for (int length = 1; length <= 15; length++) {
      code |= bit();
      int n = 0;
      for (int l : lengths) n += l == length;
      if (code - first < n) {
        int skip = code - first;
        for (size_t s = 0; s < lengths.size(); s++)
          if (lengths[s] == length && skip-- == 0) return (int)s;
      }
      first = (first + n) << 1;
      code <<= 1;
    }
    throw std::runtime_error("deflate: no such code");
  }
};

static void expect_complete(const std::vector<int> &lengths) { /* Kraft: no code is missing, none too many */
  int used = 0;
  for (int l : lengths) used += l ? 1 << (15 - l) : 0;
  EXPECT_EQ(used, 1 << 15);
}

static std::string inflate(const std::string &zlib) {
  static const int order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
  inflater in = {zlib, 16};
  std::string out;
  EXPECT_EQ((zlib[0] & 15), 8);
  EXPECT_EQ(((unsigned char)zlib[0] * 256 + (unsigned char)zlib[1]) % 31, 0);
  EXPECT_EQ(in.bits(3), 5);
  int literals = in.bits(5) + 257, distances = in.bits(5) + 1, meta = in.bits(4) + 4;
  std::vector<int> meta_lengths(19), lengths, literal_lengths;
  for (int i = 0; i < meta; i++) meta_lengths[(size_t)order[i]] = in.bits(3);
  expect_complete(meta_lengths);
  for (int i = 0; i < literals + distances; i++) {
    lengths.push_back(in.symbol(meta_lengths));
    EXPECT(lengths.back() <= 15);
  }
  literal_lengths.assign(lengths.begin(), lengths.begin() + literals);
  expect_complete(literal_lengths);
  for (int s; (s = in.symbol(literal_lengths)) != 256;) {
    EXPECT(s < 256);
    out += (char)s;
  }
  size_t end = (in.at + 7) / 8;
  EXPECT_EQ(end + 4, zlib.size());
  uint32_t adler = 0;
  for (size_t i = 0; i < 4; i++) adler = adler << 8 | (unsigned char)zlib[end + i];
  EXPECT_EQ(adler, image_adler32(out.data(), out.size()));
  return out;
}

static uint32_t big_endian(const std::string &s, size_t at) {
  uint32_t v = 0;
  for (size_t i = 0; i < 4; i++) v = v << 8 | (unsigned char)s.at(at + i);
  return v;
}

static std::string decode_png(const std::string &file, size_t width, size_t height, size_t channels) {
  std::string names, data, head;
  EXPECT_EQ(file.substr(0, 8), "\x89PNG\r\n\x1a\n");
  for (size_t at = 8; at < file.size();) {
    size_t size = big_endian(file, at);
    std::string body = file.substr(at + 4, 4 + size);
    EXPECT_EQ(big_endian(file, at + 8 + size), image_crc32(0, body.data(), body.size()));
    names += body.substr(0, 4) + " ";
    if (body.substr(0, 4) == "IDAT") data += body.substr(4);
    if (body.substr(0, 4) == "IHDR") head = body.substr(4);
    at += 12 + size;
  }
  EXPECT_EQ(names, "IHDR IDAT IEND ");
  EXPECT_EQ(big_endian(head, 0), width);
  EXPECT_EQ(big_endian(head, 4), height);
  EXPECT_EQ(head.substr(8), std::string(channels == 3 ? "\x08\x02\0\0\0" : "\x08\0\0\0\0", 5));
  std::string rows = inflate(data), out;
  size_t row = width * channels;
  EXPECT_EQ(rows.size(), height * (row + 1));
  for (size_t y = 0; y < height; y++)
    for (size_t i = 0; i < row; i++) {
      int a = i < channels ? 0 : (unsigned char)out[out.size() - channels];
      int b = y == 0 ? 0 : (unsigned char)out[out.size() - row];
      int c = i < channels || y == 0 ? 0 : (unsigned char)out[out.size() - row - channels];
      int p = a + b - c, paeth = abs(p - a) <= abs(p - b) && abs(p - a) <= abs(p - c) ? a
                                 : abs(p - b) <= abs(p - c)                           ? b
                                                                                      : c;
      int guess[5] = {0, a, b, (a + b) / 2, paeth}, filter = rows[y * (row + 1)];
      EXPECT(filter >= 0 && filter < 5);
      out += (char)(rows[y * (row + 1) + 1 + i] + guess[filter % 5]);
    }
  return out;
}

TEST(png_round_trip) {
  static const size_t shapes[][3] = {{1, 1, 1}, {1, 1, 3}, {1, 9, 3}, {9, 1, 1}, {7, 5, 3}, {64, 33, 1}, {50, 40, 3}};
  for (auto &s : shapes)
    for (unsigned smooth = 1; smooth <= 256; smooth *= 16) { /* noise, a noisy ramp, a ramp */
      image im = noise(s[0], s[1], s[2], smooth);
      image_buffer b = {NULL, 0, 0, 0};
      image_encode_png(&b, &im);
      EXPECT(!b.failed);
      EXPECT(decode_png(std::string((char *)b.data, b.size), s[0], s[1], s[2]) == samples_of(im));
      free(b.data);
      image_free(&im);
    }
}

TEST(huffman_lengths_are_limited) { /* Fibonacci counts make the deepest tree there is */
  size_t count[257] = {0};
  unsigned char length[257];
  uint16_t code[257];
  std::vector<int> lengths;
  size_t a = 1, b = 1;
  for (int i = 0; i < 40; i++) {
    count[i * 3] = a;
    b += a;
    a = b - a;
  }
  image_huffman(count, 257, 15, length, code);
  for (int i = 0; i < 257; i++) {
    lengths.push_back(length[i]);
    EXPECT_EQ(length[i] > 0, count[i] > 0);
    EXPECT(length[i] <= 15);
  }
  expect_complete(lengths);
}

static std::string read_bytes(const std::string &path) {
  std::string all;
  FILE *f = fopen(path.c_str(), "rb");
  if (!f) return "missing";
  for (int c; (c = fgetc(f)) != EOF;) all += (char)c;
  fclose(f);
  return all;
}

static void write_bytes(const std::string &path, const std::string &bytes) {
  FILE *f = fopen(path.c_str(), "wb");
  EXPECT(f && fwrite(bytes.data(), 1, bytes.size(), f) == bytes.size() && !fclose(f));
}

/* Of this process alone: under several tools the test runs beside itself. */
struct own_folder {
  const std::string top = RESULTS_FOLDER "/test_image." + std::to_string(getpid()), path = top + "/a/b";
  ~own_folder() {
    if (system(("rm -rf " + top).c_str())) printf("%s is still there\n", top.c_str());
  }
};
static const own_folder own;
static const char *const folder = own.path.c_str();

TEST(files_round_trip) {
  image_error why;
  EXPECT(image_make_directory(folder, &why));
  EXPECT(image_make_directory(folder, &why)); /* it may be there already */
  for (size_t channels = 1; channels <= 3; channels += 2) {
    image im = noise(300, 200, channels, 4), back = {0, 0, 0, NULL};
    std::string path = std::string(folder) + (channels == 1 ? "/x.pgm" : "/x.ppm");
    EXPECT(image_write(path.c_str(), &im, &why));
    EXPECT(image_write(path.c_str(), &im, &why)); /* replaces */
    EXPECT_EQ(read_bytes(path + ".part"), "missing");
    EXPECT(image_read(path.c_str(), &back, &why));
    EXPECT_EQ(back.width, (size_t)300);
    EXPECT_EQ(back.height, (size_t)200);
    EXPECT_EQ(back.channels, channels);
    EXPECT(samples_of(im) == samples_of(back));
    image_free(&back);
    path = std::string(folder) + "/x.png";
    EXPECT(image_write(path.c_str(), &im, &why));
    EXPECT(decode_png(read_bytes(path), 300, 200, channels) == samples_of(im));
    image_free(&im);
  }
}

TEST(files_that_cannot_be_read) {
  image im = {0, 0, 0, NULL};
  image_error why;
  std::string path = std::string(folder) + "/bad.ppm";
  EXPECT(image_make_directory(folder, &why));
  EXPECT(!image_read("no/such/file.ppm", &im, &why));
  EXPECT_HAS(why.text, "no/such/file.ppm: No such file");
  EXPECT(!image_read(folder, &im, &why));
  EXPECT_HAS(why.text, folder);
  write_bytes(path, "");
  EXPECT(!image_read(path.c_str(), &im, &why));
  EXPECT_EQ(std::string(why.text), path + ": the file is empty");
  write_bytes(path, "P6 300 300 255\n" + std::string(269999, 'x')); /* longer than the first read */
  EXPECT(!image_read(path.c_str(), &im, &why));
  EXPECT_EQ(std::string(why.text), path + ": truncated: 300 x 300 pixels take 270000 bytes, and only 269999 are there");
  write_bytes(path, "P6 #" + std::string(100000, '-') + "\n1 1 255\nxyz");
  EXPECT(!image_read(path.c_str(), &im, &why));
  EXPECT_HAS(why.text, "the header ends before its width");
  EXPECT(im.samples == NULL);
  /* the first read ends with the header, one byte before and one byte after */
  for (size_t n = 65535; n <= 65537; n++) {
    std::string file = "P5 3 1 255", samples = "abc";
    write_bytes(path, file + "#" + std::string(n - file.size() - 2, '-') + "\n" + samples);
    EXPECT_EQ(image_read(path.c_str(), &im, &why), n <= 65536);
    if (n <= 65536) EXPECT_EQ(samples_of(im), samples);
    image_free(&im);
  }
}

TEST(files_that_cannot_be_written) {
  image im = noise(2, 2, 3, 1);
  image_error why;
  EXPECT(image_make_directory(folder, &why));
  std::string file = std::string(folder) + "/file", taken = std::string(folder) + "/taken.ppm";
  write_bytes(file, "kept");
  EXPECT(!image_write("x.pgm", &im, &why)); /* colour */
  EXPECT_HAS(why.text, "x.pgm: the name must end in .ppm or .png");
  EXPECT(!image_write("ppm", &im, &why));
  EXPECT(!image_write("no/such/folder/x.ppm", &im, &why));
  EXPECT_HAS(why.text, "no/such/folder/x.ppm: ");
  EXPECT(!image_write((file + "/x.ppm").c_str(), &im, &why));
  EXPECT(!image_make_directory((file + "/below").c_str(), &why));
  EXPECT_HAS(why.text, "/below: ");
  EXPECT_EQ(read_bytes(file), "kept");
  EXPECT(image_make_directory(taken.c_str(), &why)); /* a directory stands where the picture should go */
  EXPECT(!image_write(taken.c_str(), &im, &why));
  EXPECT_EQ(read_bytes(taken + ".part"), "missing");
  EXPECT(!image_make_directory(std::string(5000, 'x').c_str(), &why));
  image_free(&im);
}

/* The file that a picture is written to first must not be a link that somebody else has made. */
TEST(links_are_not_followed) {
  image im = noise(20, 10, 3, 4), back = {0, 0, 0, NULL};
  image_error why;
  EXPECT(image_make_directory(folder, &why));
  std::string path = std::string(folder) + "/linked.ppm", victim = std::string(folder) + "/victim";
  write_bytes(victim, "kept");
  EXPECT(symlink("victim", (path + ".part").c_str()) == 0);
  EXPECT(symlink("missing", (path + ".part1").c_str()) == 0);
  EXPECT(image_write(path.c_str(), &im, &why));
  EXPECT_EQ(read_bytes(victim), "kept");
  EXPECT_EQ(read_bytes(std::string(folder) + "/missing"), "missing");
  EXPECT_EQ(read_bytes(path + ".part"), "kept"); /* the link is still there */
  EXPECT_EQ(read_bytes(path + ".part2"), "missing");
  EXPECT(image_read(path.c_str(), &back, &why));
  EXPECT(samples_of(im) == samples_of(back));
  image_free(&im);
  image_free(&back);
}

TEST(files_of_others_are_kept) {
  image im = noise(2, 2, 1, 1);
  image_error why;
  EXPECT(image_make_directory(folder, &why));
  const std::string path = std::string(folder) + "/busy.pgm";
  for (int i = 0; i < 100; i++) write_bytes(path + ".part" + (i ? std::to_string(i) : ""), "kept");
  EXPECT(!image_write(path.c_str(), &im, &why));
  EXPECT_EQ(std::string(why.text), path + ": File exists");
  for (int i = 0; i < 100; i++) EXPECT_EQ(read_bytes(path + ".part" + (i ? std::to_string(i) : "")), "kept");
  EXPECT_EQ(read_bytes(path), "missing");
  image_free(&im);
}

TEST(pictures_of_other_channels_are_not_written) {
  unsigned char samples[8] = {0};
  image_error why;
  EXPECT(image_make_directory(folder, &why));
  for (size_t channels : {(size_t)0, (size_t)2, (size_t)4}) {
    const image im = {2, 1, channels, samples};
    for (const char *name : {"/two.pgm", "/two.ppm", "/two.png"}) {
      const std::string path = folder + std::string(name);
      EXPECT(!image_write(path.c_str(), &im, &why));
      EXPECT_EQ(std::string(why.text), path + ": a picture has 1 or 3 channels, not " + std::to_string(channels));
      EXPECT_EQ(read_bytes(path), "missing");
    }
  }
}

TEST(directories) {
  image_error why;
  EXPECT(image_make_directory(folder, &why));
  const std::string file = std::string(folder) + "/plain", below = std::string(folder) + "/new//c/",
                    link = std::string(folder) + "/link", nowhere = std::string(folder) + "/nowhere";
  write_bytes(file, "kept");
  EXPECT(!image_make_directory(file.c_str(), &why));
  EXPECT_EQ(std::string(why.text), file + ": File exists");
  EXPECT(!image_make_directory((file + "/").c_str(), &why));
  EXPECT_EQ(read_bytes(file), "kept");
  EXPECT(image_make_directory(below.c_str(), &why));
  EXPECT(image_make_directory(below.c_str(), &why));
  EXPECT(symlink("new", link.c_str()) == 0 && symlink("none", nowhere.c_str()) == 0);
  EXPECT(image_make_directory(link.c_str(), &why)); /* a link to a directory is one */
  EXPECT(!image_make_directory(nowhere.c_str(), &why));
  EXPECT(image_make_directory("/", &why) && image_make_directory(".", &why));
  EXPECT(!image_make_directory("", &why));
}

TEST(the_checks_of_the_tour_notice_a_nan) {
  const unsigned char bytes[4] = {1, 2, 3, 4};
  const float in[4] = {1, 2, 3, 4}, upto[4] = {0, 4, 13, 29};
  for (size_t bad = 0; bad < 4; bad++) {
    float out[4] = {1, 2, 3, 4}, sums[4] = {0, 4, 13, 29};
    out[bad] = sums[bad] = NAN;
    EXPECT(isnan(check_planes(bytes, NULL, out, 4, 1)));
    EXPECT(isnan(check_blurred(in, out, 2, 2, 1)));
    EXPECT(isnan(check_dct_columns(in, out, 2, 2, 2, 2, false)));
    EXPECT(isnan(energy_error(in, sums, 29, 29, 2, 2, 2, 2)));
  }
  EXPECT(isnan(energy_error(in, upto, NAN, 29, 2, 2, 2, 2)));
  EXPECT(isnan(energy_error(in, upto, 29, NAN, 2, 2, 2, 2)));
  EXPECT_EQ(energy_error(in, upto, 29, 29, 2, 2, 2, 2), 0.0);
  EXPECT_EQ(check_planes(bytes, NULL, in, 4, 1), 0.0);
}

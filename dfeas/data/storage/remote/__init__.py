"""Object stores: datasets and files behind s3://, gs:// and az:// URLs, read and written by block."""
